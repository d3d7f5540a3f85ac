import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  statfs,
  unlink,
} from 'node:fs/promises'
import { dirname } from 'node:path'
import { ExportError, type Log, type Store } from '../core/index.ts'
import { looks } from './looks.ts'
import { openRegular } from './open-regular.ts'
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
 * umask allows), and what is said to be written is flushed, its folder entry too.
 */
export function diskStore({ root, fileMode, dirMode }: DiskOptions): Store {
  const madeFolders = new Set<string>()

  const place = (path: string): string => placeIn(root, path)

  // One at a time: who finds a folder that another has just made must not go on before its entry is flushed.
  let making: Promise<void> = Promise.resolve()
  const makeFolder = async (folder: string): Promise<void> => {
    const made = making.then(() => makeFlushed(folder))
    making = made.catch(() => {})
    await made
  }

  const makeFlushed = async (folder: string): Promise<void> => {
    if (madeFolders.has(folder)) return
    const first = await mkdir(folder, { recursive: true, mode: dirMode })
    // Each folder that was made is an entry in its parent, which must reach the disk as well.
    if (first !== undefined) {
      for (let made = folder; made.length >= first.length; made = dirname(made))
        await flushFolder(dirname(made))
    }
    if (madeFolders.size > 100_000) madeFolders.clear()
    madeFolders.add(folder)
  }

  const create = async (full: string, flags: number): Promise<FileHandle> => {
    await makeFolder(dirname(full))
    try {
      return await openRegular(full, flags | constants.O_CREAT, fileMode)
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
      // The folder was there a moment ago: somebody removed it. Make it anew.
      madeFolders.clear()
      await makeFolder(dirname(full))
      return await openRegular(full, flags | constants.O_CREAT, fileMode)
    }
  }

  return {
    openLog: (path, size) =>
      naming(path, async () => {
        const full = place(path)
        const handle =
          size === 0 ? await create(full, constants.O_RDWR) : await openExisting(full, path, size)
        try {
          const { size: found, ino, dev } = await handle.stat()
          if (found < size) throw shorter(path, found, size)
          if (found > size) await handle.truncate(size)
          if (size === 0) await flushFolder(dirname(full))
          return log({ path, full, handle, ino, dev }, size)
        } catch (error) {
          await handle.close()
          throw error
        }
      }),

    read: (path) =>
      naming(path, async () => {
        try {
          const handle = await openRegular(place(path), constants.O_RDONLY)
          try {
            return new Uint8Array(await handle.readFile())
          } finally {
            await handle.close()
          }
        } catch (error) {
          if (isAbsent(error)) return null
          throw error
        }
      }),

    readRange: (path, start, end) =>
      naming(path, async () => {
        const bytes = new Uint8Array(end - start)
        const read = await readAt(place(path), bytes, start)
        return read === bytes.byteLength ? bytes : bytes.slice(0, read)
      }),

    readInto: (path, bytes) => naming(path, () => readAt(place(path), bytes, 0)),

    async *stream(path) {
      try {
        const handle = await openRegular(place(path), constants.O_RDONLY)
        // The stream closes it, also when it is left half-way.
        yield* handle.createReadStream({ highWaterMark: 1 << 20 }) as AsyncIterable<Uint8Array>
      } catch (error) {
        throw storageError(error, path)
      }
    },

    size: (path) =>
      naming(path, async () => {
        try {
          return (await stat(place(path))).size
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
        const temporary = `${full}.${randomBytes(4).toString('hex')}.tmp`
        const handle = await create(temporary, constants.O_WRONLY | constants.O_EXCL)
        try {
          try {
            await writeChunks(handle, chunks)
            await handle.sync()
          } finally {
            await handle.close()
          }
          await rename(temporary, full)
        } catch (error) {
          await rm(temporary, { force: true })
          throw error
        }
        await flushFolder(dirname(full))
      }),

    publish: (from, to) =>
      naming(to, async () => {
        const [source, target] = [place(from), place(to)]
        await makeFolder(dirname(target))
        try {
          await rename(source, target)
        } catch (error) {
          if (!isAbsent(error)) throw error
          if ((await stat(target).catch(() => null)) === null) {
            if ((await stat(source).catch(() => null)) === null) throw error
            madeFolders.clear()
            await makeFolder(dirname(target))
            await rename(source, target)
          }
        }
        await flushFolder(dirname(target))
      }),

    remove: (path) =>
      naming(path, async () => {
        try {
          await unlink(place(path))
        } catch (error) {
          if (isAbsent(error)) return
          throw error
        }
        await flushFolder(dirname(place(path)))
      }),

    list: (folder) =>
      naming(folder, async () => {
        try {
          return (await readdir(place(folder))).sort()
        } catch (error) {
          if (isAbsent(error)) return []
          throw error
        }
      }),

    removeFolder: (folder) =>
      naming(folder, async () => {
        madeFolders.clear()
        await rm(place(folder), { recursive: true, force: true })
      }),

    removeEmptyFolder: (folder) =>
      naming(folder, async () => {
        madeFolders.clear()
        await rmdir(place(folder)).catch((error: unknown) => {
          if (!isAbsent(error) && !hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'EEXIST')) throw error
        })
      }),
  }
}

type OpenFile = {
  readonly path: string
  readonly full: string
  readonly handle: FileHandle
  readonly ino: number
  readonly dev: number
}

function log(file: OpenFile, start: number): Log {
  const { path, handle } = file
  let size = start
  return {
    path,
    get size() {
      return size
    },
    append: (chunks) =>
      naming(path, async () => {
        // A write that fails half-way leaves bytes behind `size`; the next one goes over them.
        size = await writeAt(handle, chunks, size)
      }),
    reset: () =>
      naming(path, async () => {
        await handle.truncate(0)
        size = 0
      }),
    flush: () =>
      naming(path, async () => {
        await Promise.all([handle.datasync(), requireInPlace(file)])
      }),
    close: () => naming(path, () => handle.close()),
  }
}

/** A file that was removed or moved can still be written to, but nobody will find it again. */
async function requireInPlace({ full, ino, dev }: OpenFile): Promise<void> {
  const there = await stat(full)
  if (there.ino !== ino || there.dev !== dev) {
    throw Object.assign(new Error('another file took its place'), { code: 'ENOENT' })
  }
}

/** @returns how many bytes there were from `position` on, as far as there is room for them */
async function readAt(full: string, bytes: Uint8Array, position: number): Promise<number> {
  const handle = await openRegular(full, constants.O_RDONLY)
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

async function writeAt(handle: FileHandle, chunks: readonly Uint8Array[], position: number): Promise<number> {
  let at = position
  for (const chunk of chunks) {
    for (let done = 0; done < chunk.byteLength; ) {
      const { bytesWritten } = await handle.write(chunk, done, chunk.byteLength - done, at)
      done += bytesWritten
      at += bytesWritten
    }
  }
  return at
}

/** Gathers small chunks, so that a manifest of a million lines is not a million writes. */
async function writeChunks(handle: FileHandle, chunks: Iterable<string | Uint8Array>): Promise<void> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  let at = 0
  for (const chunk of chunks) {
    const buffer = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    waiting.push(buffer)
    bytes += buffer.byteLength
    if (bytes >= 1 << 20) {
      at = await writeAt(handle, [Buffer.concat(waiting)], at)
      waiting = []
      bytes = 0
    }
  }
  await writeAt(handle, [Buffer.concat(waiting)], at)
}

async function flushFolder(folder: string): Promise<void> {
  // Windows can't open a folder; its file system keeps the order of such changes by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function naming<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw storageError(error, path)
  }
}

/** What holds bytes already is never made anew. */
async function openExisting(full: string, path: string, size: number): Promise<FileHandle> {
  try {
    return await openRegular(full, constants.O_RDWR)
  } catch (error) {
    throw isAbsent(error) ? shorter(path, 0, size) : error
  }
}

function shorter(path: string, found: number, size: number): ExportError {
  return new ExportError(
    'damaged',
    `The file holds ${found} bytes, but the checkpoint counts on ${size}`,
    path,
    'Put the file back as it was, or start over with --fresh.',
  )
}

function isAbsent(error: unknown): boolean {
  return hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
