import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, readdir, rename, rm, rmdir, statfs, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Log, shorterThanCounted } from '../core/index.ts'
import { Folders, linkError, pathIn } from './folders.ts'
import { fsyncFolder, logFile, openFile, readAt, writeChunks } from './open-file.ts'
import { isThere, StagingDirectory } from './staging-directory.ts'
import { hasCode, isAbsent } from './storage-error.ts'

export type DiskOptions = {
  /** Absolute path of the data set. */
  readonly root: string
  readonly fileMode: number
  readonly dirMode: number
}

/**
 * The files of a data set on a local disk, by their paths. With a staging directory every name in the data set changes
 * by a move into that directory or out of it. Methods throw the errors of the file system.
 */
export class DiskFiles {
  readonly #options: DiskOptions
  readonly #folders: Folders
  readonly #staging: StagingDirectory | null

  constructor(options: DiskOptions, folders = makeFolders(options), staging: StagingDirectory | null = null) {
    this.#options = options
    this.#folders = folders
    this.#staging = staging
  }

  /** The same files, changed through a new staging directory that represents `folder`. */
  async fenced(
    folder: string,
    owner: string,
  ): Promise<{ readonly files: DiskFiles; readonly staging: StagingDirectory }> {
    const common = this.#locate(folder)
    const make = () => StagingDirectory.make(common, owner, this.#options)
    const staging = await this.#inFolder(dirname(common), make)
    return { files: new DiskFiles(this.#options, this.#folders, staging), staging }
  }

  async openLog(path: string, size: number): Promise<Log> {
    const full = this.#locate(path)
    const handle = size === 0 ? await this.#emptyLog(full) : await this.#existingLog(full, path, size)
    try {
      const { size: found, ino, dev } = await handle.stat()
      if (found < size) throw shorterThanCounted(path, found, size)
      if (found > size) await handle.truncate(size)
      if (size === 0) await fsyncFolder(dirname(full))
      return logFile({ path, full, handle, ino, dev }, size)
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async read(path: string): Promise<Uint8Array<ArrayBuffer> | null> {
    let handle: FileHandle
    try {
      handle = await openFile(await this.#checked(path), constants.O_RDONLY)
    } catch (error) {
      if (isAbsent(error)) return null
      throw error
    }
    try {
      return new Uint8Array(await handle.readFile())
    } finally {
      await handle.close()
    }
  }

  async readRange(path: string, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(end - start)
    const read = await readAt(await this.#checked(path), bytes, start)
    return read === bytes.byteLength ? bytes : bytes.slice(0, read)
  }

  async readInto(path: string, bytes: Uint8Array): Promise<number> {
    return readAt(await this.#checked(path), bytes, 0)
  }

  async *stream(path: string): AsyncGenerator<Uint8Array> {
    const handle = await openFile(await this.#checked(path), constants.O_RDONLY)
    yield* handle.createReadStream({ highWaterMark: 1 << 20 }) as AsyncIterable<Uint8Array>
  }

  async size(path: string): Promise<number | null> {
    try {
      const found = await lstat(await this.#checked(path))
      if (found.isSymbolicLink()) throw linkError()
      return found.size
    } catch (error) {
      if (isAbsent(error)) return null
      throw error
    }
  }

  async freeBytes(): Promise<number | null> {
    try {
      const { bavail, bsize, blocks } = await statfs(this.#options.root)
      // Some file systems over a network do not report their size.
      return blocks === 0 ? null : bavail * bsize
    } catch {
      return null
    }
  }

  async writeWhole(path: string, chunks: Iterable<string | Uint8Array>): Promise<void> {
    const full = this.#locate(path)
    const [temporary, handle] = await this.#createTemporary(full)
    try {
      try {
        await writeChunks(handle, chunks)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await this.#moveTo(temporary, full)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
    await fsyncFolder(dirname(full))
  }

  async publish(from: string, to: string): Promise<void> {
    const [source, target] = [this.#locate(from), this.#locate(to)]
    if (this.#isFenced(source) && this.#isFenced(target)) throw new Error('a move past the staging directory')
    const move = async (): Promise<void> => {
      await this.#folders.guard.check(dirname(source))
      if (this.#isFenced(source)) await refuseLink(source)
      await rename(source, target)
    }
    try {
      await (this.#staging?.has(target) ? move() : this.#inFolder(dirname(target), move))
    } catch (error) {
      if (!isAbsent(error) || !(await isThere(target))) throw error
    }
    await fsyncFolder(dirname(target))
  }

  async remove(path: string): Promise<void> {
    const full = this.#locate(path)
    try {
      if (this.#staging === null || this.#staging.has(full)) {
        await this.#folders.guard.check(dirname(full))
        await unlink(full)
      } else await removeThrough(await this.#checked(path), this.#staging.temporary('gone'))
    } catch (error) {
      if (!isAbsent(error)) throw error
      await this.#staging?.require()
      return
    }
    await fsyncFolder(dirname(full))
  }

  async list(folder: string): Promise<readonly string[]> {
    const full = this.#locate(folder)
    try {
      await this.#folders.guard.check(full)
      return (await readdir(full)).sort()
    } catch (error) {
      if (isAbsent(error)) return []
      throw error
    }
  }

  async removeFolder(folder: string): Promise<void> {
    this.#folders.forget()
    try {
      const full = await this.#checked(folder)
      const gone = this.#staging === null || this.#staging.has(full) ? full : this.#staging.temporary('gone')
      if (gone !== full) await rename(full, gone)
      await rm(gone, { recursive: true })
    } catch (error) {
      if (!isAbsent(error)) throw error
      await this.#staging?.require()
    }
  }

  async removeEmptyFolder(folder: string): Promise<void> {
    this.#folders.forget()
    await rmdir(this.#locate(folder)).catch((error: unknown) => {
      if (!isAbsent(error) && !hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
    })
  }

  /** Puts a copy in the place of a file of the data set. */
  async replaceByCopy(path: string): Promise<void> {
    const full = await this.#checked(path)
    if (!(await isThere(full))) return
    await this.#staging?.copy(full, full)
    await fsyncFolder(dirname(full))
  }

  #locate(path: string): string {
    const full = pathIn(this.#options.root, path)
    return this.#staging === null ? full : this.#staging.locate(full)
  }

  /** The location of a path whose folders are no links. */
  async #checked(path: string): Promise<string> {
    const full = this.#locate(path)
    await this.#folders.guard.check(dirname(full))
    return full
  }

  /** Whether a name may change only by a move into the staging directory or out of it. */
  #isFenced(full: string): boolean {
    return this.#staging !== null && !this.#staging.has(full)
  }

  /** Does work that needs a folder, which is made; once more if somebody removes it meanwhile. */
  async #inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
    await this.#folders.make(folder)
    try {
      return await work()
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
      await this.#staging?.require()
      this.#folders.forget()
      await this.#folders.make(folder)
      return await work()
    }
  }

  #create(full: string, flags: number): Promise<FileHandle> {
    const open = () => openFile(full, flags | constants.O_CREAT, this.#options.fileMode)
    // The staging directory is never made anew: two owners could then hold the same one.
    return this.#staging?.has(full) ? open() : this.#inFolder(dirname(full), open)
  }

  async #createTemporary(full: string): Promise<[name: string, handle: FileHandle]> {
    const name = this.#staging?.temporary('tmp') ?? `${full}.${randomBytes(4).toString('hex')}.tmp`
    return [name, await this.#create(name, constants.O_RDWR | constants.O_EXCL)]
  }

  /** Gives a temporary file its name, which must not be a link's. */
  async #moveTo(temporary: string, full: string): Promise<void> {
    const move = async (): Promise<void> => {
      await this.#folders.guard.check(dirname(full))
      await refuseLink(full)
      await rename(temporary, full)
    }
    await (this.#staging?.has(full) ? move() : this.#inFolder(dirname(full), move))
  }

  async #emptyLog(full: string): Promise<FileHandle> {
    if (!this.#isFenced(full)) return this.#create(full, constants.O_RDWR)
    const [temporary, handle] = await this.#createTemporary(full)
    try {
      await this.#moveTo(temporary, full)
      return handle
    } catch (error) {
      await handle.close()
      await rm(temporary, { force: true })
      throw error
    }
  }

  /** A log with bytes is never created again. */
  async #existingLog(full: string, path: string, size: number): Promise<FileHandle> {
    let handle: FileHandle
    try {
      await this.#folders.guard.check(dirname(full))
      handle = await openFile(full, constants.O_RDWR)
    } catch (error) {
      if (!isAbsent(error)) throw error
      await this.#staging?.require()
      throw shorterThanCounted(path, 0, size)
    }
    try {
      // A new owner first removes the staging directory, then replaces this file by a copy. If the directory exists,
      // the file opened here is not the new owner's. Nothing was changed yet.
      if (this.#isFenced(full)) await this.#staging?.require()
      return handle
    } catch (error) {
      await handle.close()
      throw error
    }
  }
}

function makeFolders({ root, dirMode }: DiskOptions): Folders {
  return new Folders(root, dirMode)
}

/** Moves a file into the staging directory, and deletes it there. */
async function removeThrough(full: string, gone: string): Promise<void> {
  const found = await lstat(full)
  if (found.isSymbolicLink()) throw linkError()
  if (found.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  await rename(full, gone)
  await unlink(gone)
}

async function refuseLink(full: string): Promise<void> {
  try {
    if ((await lstat(full)).isSymbolicLink()) throw linkError()
  } catch (error) {
    if (!isAbsent(error)) throw error
  }
}
