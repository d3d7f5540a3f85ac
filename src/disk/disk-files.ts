import { type Stats, statfsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Folders, linkError, pathIn } from './folders.ts'
import { openFile, readRange, statOf } from './open-file.ts'
import { isAbsent, nullIfAbsent, unlessAbsent } from './storage-error.ts'

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
  readonly folders: Folders

  constructor(readonly options: DiskOptions) {
    this.folders = new Folders(options.root, options.dirMode)
  }

  async read(path: string, start: number, end: number): Promise<Uint8Array | null> {
    return unlessAbsent(() => readRange(this.checked(path), start, end))
  }

  async *stream(path: string): AsyncGenerator<Uint8Array> {
    const { handle, size } = await openFile(this.checked(path))
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
    const found = this.find(path)
    if (found?.isSymbolicLink()) throw linkError()
    return found?.size ?? null
  }

  async list(folder: string): Promise<readonly string[]> {
    const full = pathIn(this.options.root, folder)
    unlessAbsent(() => this.folders.guard.check(full))
    const names = await readdir(full).catch(nullIfAbsent)
    return names?.sort() ?? []
  }

  async freeBytes(): Promise<number | null> {
    for (let folder = this.options.root; ; folder = dirname(folder)) {
      try {
        const { bavail, bsize, blocks } = statfsSync(folder)
        // Some file systems over a network do not report their size.
        return blocks === 0 ? null : bavail * bsize
      } catch (error) {
        // Before the first run there is no folder.
        if (!isAbsent(error) || folder === dirname(folder)) return null
      }
    }
  }

  /** What has the path; null: nothing, or its folder is missing. */
  find(path: string): Stats | null {
    return unlessAbsent(() => statOf(this.checked(path)))
  }

  /** The location of a path whose folders are no links. */
  checked(path: string): string {
    const full = pathIn(this.options.root, path)
    this.folders.guard.check(dirname(full))
    return full
  }
}
