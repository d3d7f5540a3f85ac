import { type FileHandle, lstat } from 'node:fs/promises'
import type { Log } from '../core/index.ts'
import { writeAt } from './open-file.ts'

export type OpenedFile = {
  readonly path: string
  readonly full: string
  readonly handle: FileHandle
  readonly ino: number
  readonly dev: number
}

/** @param start bytes that the file has */
export function logFile(file: OpenedFile, start: number): Log {
  const { path, handle } = file
  let size = start
  return {
    path,
    get size() {
      return size
    },
    async append(chunks) {
      // A write that fails half-way leaves bytes behind `size`; the next one overwrites them.
      size = await writeAt(handle, chunks, size)
    },
    async fsync() {
      await Promise.all([handle.datasync(), requireSameFile(file)])
    },
    close: () => handle.close(),
  }
}

/** A file that was removed or moved can still be written to, but nobody will find it again. */
async function requireSameFile({ full, ino, dev }: OpenedFile): Promise<void> {
  const found = await lstat(full)
  if (found.ino !== ino || found.dev !== dev) {
    throw Object.assign(new Error('another file took its place'), { code: 'ENOENT' })
  }
}
