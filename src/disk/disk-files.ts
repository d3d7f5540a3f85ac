import { statfsSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { BufferPool } from '../core/index.ts'
import { Folders, linkError, pathIn } from './folders.ts'
import { openFile, readRange } from './open-file.ts'
import { nullIfAbsent } from './storage-error.ts'

export type DiskOptions = {
  /** Absolute path of the data set. */
  readonly root: string
  readonly fileMode: number
  readonly dirMode: number
}

/** A stream of Node takes as much for each file, and these are mostly smaller. */
const CHUNK_BYTES = 1 << 20

/** The files of a data set on a local disk, by their paths. Methods throw the errors of the file system. */
export class DiskFiles {
  readonly options: DiskOptions
  readonly folders: Folders

  constructor(options: DiskOptions) {
    this.options = options
    this.folders = new Folders(options.root, options.dirMode)
  }

  async read(path: string, start: number, end: number, memory?: BufferPool): Promise<Uint8Array | null> {
    try {
      return readRange(this.checkedSync(path), start, end, memory)
    } catch (error) {
      return nullIfAbsent(error)
    }
  }

  async *stream(path: string): AsyncGenerator<Uint8Array> {
    const { handle, size } = await openFile(await this.checked(path))
    try {
      for (let at = 0; at < size; ) {
        const chunk = new Uint8Array(Math.min(size - at, CHUNK_BYTES))
        const { bytesRead } = await handle.read(chunk, 0, chunk.byteLength, at)
        if (bytesRead === 0) return
        yield chunk.subarray(0, bytesRead)
        at += bytesRead
      }
    } finally {
      await handle.close()
    }
  }

  async size(path: string): Promise<number | null> {
    const found = await this.checked(path)
      .then((full) => lstat(full))
      .catch(nullIfAbsent)
    if (found?.isSymbolicLink()) throw linkError()
    return found?.size ?? null
  }

  async list(folder: string): Promise<readonly string[]> {
    const full = pathIn(this.options.root, folder)
    const names = await this.folders.guard
      .check(full)
      .then(() => readdir(full))
      .catch(nullIfAbsent)
    return names?.sort() ?? []
  }

  async freeBytes(): Promise<number | null> {
    try {
      const { bavail, bsize, blocks } = statfsSync(this.options.root)
      // Some file systems over a network do not report their size.
      return blocks === 0 ? null : bavail * bsize
    } catch {
      return null
    }
  }

  /** The location of a path whose folders are no links. */
  async checked(path: string): Promise<string> {
    const full = pathIn(this.options.root, path)
    await this.folders.guard.check(dirname(full))
    return full
  }

  /** The same without a promise. */
  checkedSync(path: string): string {
    const full = pathIn(this.options.root, path)
    this.folders.guard.checkSync(dirname(full))
    return full
  }
}
