import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, readdir, rename, rm, rmdir, statfs, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Log, type OwnStore, type Store, shorterThanCounted } from '../core/index.ts'
import { hasCode, isAbsent } from './codes.ts'
import { logFile } from './log-file.ts'
import { looks } from './looks.ts'
import { FolderGuard } from './no-links.ts'
import { flushFolder, openFile, writeChunks } from './open-file.ts'
import { isThere, OwnFolder } from './own-folder.ts'
import { placeIn } from './place.ts'
import { storageError } from './storage-error.ts'

export type DiskOptions = {
  /** Absolute path of the data set. */
  readonly root: string
  readonly fileMode: number
  readonly dirMode: number
}

/**
 * A {@link Store} in a folder of a local disk. Files are made private (the modes given, whatever the
 * umask allows), and what is said to be written is flushed, its folder entry too. No symbolic link below the folder
 * is followed. Locks, and runs that change what is there, work through an `own` folder; see {@link OwnStore}.
 */
export function diskStore(options: DiskOptions): Store {
  return storeOf(options, foldersOf(options), null)
}

type Folders = {
  readonly guard: FolderGuard
  /** Makes a folder that is not there yet, and flushes its entry. */
  make(folder: string): Promise<void>
  /** Forgets which folders are there: somebody has removed some. */
  forget(): void
}

function foldersOf({ root, dirMode }: DiskOptions): Folders {
  const guard = new FolderGuard(root)
  const made = new Set<string>()
  const makeFlushed = async (folder: string): Promise<void> => {
    if (made.has(folder)) return
    await guard.check(folder).catch((error: unknown) => {
      if (!isAbsent(error)) throw error
    })
    const first = await mkdir(folder, { recursive: true, mode: dirMode })
    // Each folder that was made is an entry in its parent, which must reach the disk as well.
    if (first !== undefined) {
      for (let each = folder; each.length >= first.length; each = dirname(each))
        await flushFolder(dirname(each))
    }
    if (made.size > 100_000) made.clear()
    made.add(folder)
  }
  // One at a time: who finds a folder that another has just made must not go on before its entry is flushed.
  let making: Promise<void> = Promise.resolve()
  return {
    guard,
    async make(folder) {
      const turn = making.then(() => makeFlushed(folder))
      making = turn.catch(() => {})
      await turn
    },
    forget: () => made.clear(),
  }
}

function storeOf(options: DiskOptions, folders: Folders, own: null): Store
function storeOf(options: DiskOptions, folders: Folders, own: OwnFolder): OwnStore
function storeOf(options: DiskOptions, folders: Folders, own: OwnFolder | null): Store {
  const { root, fileMode, dirMode } = options
  const { guard } = folders

  const place = (path: string): string => {
    const full = placeIn(root, path)
    return own === null ? full : own.place(full)
  }
  /** Whether every name in the data set changes by a move into the own folder, or out of it, but for this one. */
  const isFenced = (full: string): boolean => own !== null && !own.has(full)

  /** Where a file is, after a look at the folders on the way. */
  const reach = async (path: string): Promise<string> => {
    const full = place(path)
    await guard.check(dirname(full))
    return full
  }

  const naming = async <T>(path: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (own === null || !(isAbsent(error) || hasCode(error, 'ESTALE'))) throw storageError(error, path)
      try {
        await own.require()
      } catch (loss) {
        throw storageError(loss, path)
      }
      throw storageError(error, path)
    }
  }

  /** Does work that needs a folder, which is made; once more if somebody removes it meanwhile. */
  const inFolder = async <T>(folder: string, work: () => Promise<T>): Promise<T> => {
    await folders.make(folder)
    try {
      return await work()
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
      await own?.require()
      folders.forget()
      await folders.make(folder)
      return await work()
    }
  }

  const create = (full: string, flags: number): Promise<FileHandle> => {
    const open = () => openFile(full, flags | constants.O_CREAT, fileMode)
    // The own folder is made once: were it made anew, whoever took it away would not be the only owner.
    return own?.has(full) ? open() : inFolder(dirname(full), open)
  }

  const createPassing = async (full: string): Promise<[name: string, handle: FileHandle]> => {
    const name = own === null ? `${full}.${randomBytes(4).toString('hex')}.tmp` : own.passing('tmp')
    return [name, await create(name, constants.O_RDWR | constants.O_EXCL)]
  }

  /** Moves a file out of the own folder to its name, where no link must stand. */
  const moveTo = async (passing: string, full: string): Promise<void> => {
    const move = async (): Promise<void> => {
      await guard.check(dirname(full))
      await refuseLink(full)
      await rename(passing, full)
    }
    await (own?.has(full) ? move() : inFolder(dirname(full), move))
  }

  const emptyLog = async (full: string): Promise<FileHandle> => {
    if (!isFenced(full)) return create(full, constants.O_RDWR)
    const [passing, handle] = await createPassing(full)
    try {
      await moveTo(passing, full)
      return handle
    } catch (error) {
      await handle.close()
      await rm(passing, { force: true })
      throw error
    }
  }

  /** What holds bytes already is never made anew. */
  const existingLog = async (full: string, path: string, size: number): Promise<FileHandle> => {
    let handle: FileHandle
    try {
      await guard.check(dirname(full))
      handle = await openFile(full, constants.O_RDWR)
    } catch (error) {
      if (!isAbsent(error)) throw error
      await own?.require()
      throw shorterThanCounted(path, 0, size)
    }
    try {
      // Who takes over puts a copy in the file's place, and takes the own folder away before. So as long as the
      // folder is there this is not the new owner's file, and nothing was changed yet.
      if (isFenced(full)) await own?.require()
      return handle
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  const openLog = (path: string, size: number): Promise<Log> =>
    naming(path, async () => {
      const full = place(path)
      const handle = size === 0 ? await emptyLog(full) : await existingLog(full, path, size)
      try {
        const { size: found, ino, dev } = await handle.stat()
        if (found < size) throw shorterThanCounted(path, found, size)
        if (found > size) await handle.truncate(size)
        if (size === 0) await flushFolder(dirname(full))
        return logFile({ path, full, handle, ino, dev }, size, naming)
      } catch (error) {
        await handle.close()
        throw error
      }
    })

  const store: Store = {
    openLog,
    openSmallLog: openLog,

    read: (path) =>
      naming(path, async () => {
        let handle: FileHandle
        try {
          handle = await openFile(await reach(path), constants.O_RDONLY)
        } catch (error) {
          if (isAbsent(error)) return null
          throw error
        }
        try {
          return new Uint8Array(await handle.readFile())
        } finally {
          await handle.close()
        }
      }),

    readRange: (path, start, end) =>
      naming(path, async () => {
        const bytes = new Uint8Array(end - start)
        const read = await readAt(await reach(path), bytes, start)
        return read === bytes.byteLength ? bytes : bytes.slice(0, read)
      }),

    readInto: (path, bytes) => naming(path, async () => readAt(await reach(path), bytes, 0)),

    async *stream(path) {
      try {
        const handle = await openFile(await reach(path), constants.O_RDONLY)
        yield* handle.createReadStream({ highWaterMark: 1 << 20 }) as AsyncIterable<Uint8Array>
      } catch (error) {
        throw storageError(error, path)
      }
    },

    size: (path) =>
      naming(path, async () => {
        try {
          const found = await lstat(await reach(path))
          if (found.isSymbolicLink()) throw aLink()
          return found.size
        } catch (error) {
          if (isAbsent(error)) return null
          throw error
        }
      }),

    freeBytes: async () => {
      try {
        const { bavail, bsize, blocks } = await statfs(root)
        // Some file systems over a network say nothing of their size.
        return blocks === 0 ? null : bavail * bsize
      } catch {
        return null
      }
    },

    looks: () => looks(root),

    writeWhole: (path, chunks) =>
      naming(path, async () => {
        const full = place(path)
        const [passing, handle] = await createPassing(full)
        try {
          try {
            await writeChunks(handle, chunks)
            await handle.sync()
          } finally {
            await handle.close()
          }
          await moveTo(passing, full)
        } catch (error) {
          await rm(passing, { force: true })
          throw error
        }
        await flushFolder(dirname(full))
      }),

    publish: (from, to) =>
      naming(to, async () => {
        const [source, target] = [place(from), place(to)]
        if (isFenced(source) && isFenced(target)) throw new Error('a move that passes the own folder by')
        const move = async (): Promise<void> => {
          await guard.check(dirname(source))
          if (isFenced(source)) await refuseLink(source)
          await rename(source, target)
        }
        try {
          await (own?.has(target) ? move() : inFolder(dirname(target), move))
        } catch (error) {
          if (!isAbsent(error) || !(await isThere(target))) throw error
        }
        await flushFolder(dirname(target))
      }),

    remove: (path) =>
      naming(path, async () => {
        const full = place(path)
        try {
          if (own === null || own.has(full)) {
            await guard.check(dirname(full))
            await unlink(full)
          } else await moveAway(await reach(path), own.passing('gone'))
        } catch (error) {
          if (!isAbsent(error)) throw error
          await own?.require()
          return
        }
        await flushFolder(dirname(full))
      }),

    list: (folder) =>
      naming(folder, async () => {
        const full = place(folder)
        try {
          await guard.check(full)
          return (await readdir(full)).sort()
        } catch (error) {
          if (isAbsent(error)) return []
          throw error
        }
      }),

    removeFolder: (folder) =>
      naming(folder, async () => {
        folders.forget()
        try {
          const full = await reach(folder)
          const gone = own === null || own.has(full) ? full : own.passing('gone')
          if (gone !== full) await rename(full, gone)
          await rm(gone, { recursive: true })
        } catch (error) {
          if (!isAbsent(error)) throw error
          await own?.require()
        }
      }),

    removeEmptyFolder: (folder) =>
      naming(folder, async () => {
        folders.forget()
        await rmdir(place(folder)).catch((error: unknown) => {
          if (!isAbsent(error) && !hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
        })
      }),

    own: (folder, owner) =>
      naming(folder, async () => {
        const common = place(folder)
        const make = () => OwnFolder.make(common, owner, { fileMode, dirMode })
        return storeOf(options, folders, await inFolder(dirname(common), make))
      }),
  }
  if (own === null) return store

  const ownStore: OwnStore = {
    ...store,
    takeOver: (owner, mayWrite) => naming('_state', () => own.takeOver(owner, mayWrite)),
    renew: (path) =>
      naming(path, async () => {
        const full = await reach(path)
        if (!(await isThere(full))) return
        await own.copy(full, full)
        await flushFolder(dirname(full))
      }),
    settle: () => naming('_state', () => own.settle()),
    leave: () => naming('_state', () => own.leave()),
    require: () => naming('_state', () => own.require()),
  }
  return ownStore
}

/** A file leaves the data set for the own folder, and is deleted there. */
async function moveAway(full: string, gone: string): Promise<void> {
  const found = await lstat(full)
  if (found.isSymbolicLink()) throw aLink()
  if (found.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  await rename(full, gone)
  await unlink(gone)
}

async function refuseLink(full: string): Promise<void> {
  try {
    if ((await lstat(full)).isSymbolicLink()) throw aLink()
  } catch (error) {
    if (!isAbsent(error)) throw error
  }
}

function aLink(): Error {
  return Object.assign(new Error('a link'), { code: 'ELOOP' })
}

/** @returns how many bytes there were from `position` on, as far as there is room for them */
async function readAt(full: string, bytes: Uint8Array, position: number): Promise<number> {
  const handle = await openFile(full, constants.O_RDONLY)
  try {
    let read = 0
    while (read < bytes.byteLength) {
      const { bytesRead } = await handle.read(bytes, read, bytes.byteLength - read, position + read)
      if (bytesRead === 0) break
      read += bytesRead
    }
    return read
  } finally {
    await handle.close()
  }
}
