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

/** @param naming gives errors the path of the file */
export function logFile(
  file: OpenedFile,
  start: number,
  naming: <T>(path: string, work: () => Promise<T>) => Promise<T>,
): Log {
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
    flush: () =>
      naming(path, async () => {
        await Promise.all([handle.datasync(), requireInPlace(file)])
      }),
    close: () => naming(path, () => handle.close()),
  }
}

/** A file that was removed or moved can still be written to, but nobody will find it again. */
async function requireInPlace({ full, ino, dev }: OpenedFile): Promise<void> {
  const there = await lstat(full)
  if (there.ino !== ino || there.dev !== dev) {
    throw Object.assign(new Error('another file took its place'), { code: 'ENOENT' })
  }
}
