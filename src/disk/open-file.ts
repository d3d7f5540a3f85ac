import { constants } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import type { Log } from '../core/index.ts'

// Opening fails on a link, and does not wait for the writer of a pipe. Windows has neither flag.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants

/** Opens a file of the data set. @throws EISDIR, EFTYPE where something else has its name */
export async function openFile(full: string, flags: number, mode?: number): Promise<FileHandle> {
  const handle = await open(full, flags | O_NOFOLLOW | O_NONBLOCK, mode)
  // O_EXCL made it, so it is a file.
  if ((flags & constants.O_EXCL) !== 0) return handle
  try {
    const found = await handle.stat()
    if (found.isFile()) return handle
    throw Object.assign(new Error('no file'), { code: found.isDirectory() ? 'EISDIR' : 'EFTYPE' })
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Chunks up to this size are copied together: a separate write takes as long as copying so much. */
const SMALL_BYTES = 64 * 1024

/** @returns the offset after the written bytes */
export async function writeAt(
  handle: FileHandle,
  chunks: readonly Uint8Array[],
  position: number,
): Promise<number> {
  let offset = position
  const isSmall =
    chunks.length > 1 && chunks.reduce((sum, { byteLength }) => sum + byteLength, 0) <= SMALL_BYTES
  for (const chunk of isSmall ? [Buffer.concat(chunks)] : chunks) {
    for (let done = 0; done < chunk.byteLength; ) {
      const { bytesWritten } = await handle.write(chunk, done, chunk.byteLength - done, offset)
      done += bytesWritten
      offset += bytesWritten
    }
  }
  return offset
}

/** Gathers small chunks, so that a manifest of a million lines is not a million writes. */
export async function writeChunks(handle: FileHandle, chunks: Iterable<string | Uint8Array>): Promise<void> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  let offset = 0
  for (const chunk of chunks) {
    const buffer = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    waiting.push(buffer)
    bytes += buffer.byteLength
    if (bytes >= 1 << 20) {
      offset = await writeAt(handle, [Buffer.concat(waiting)], offset)
      waiting = []
      bytes = 0
    }
  }
  await writeAt(handle, [Buffer.concat(waiting)], offset)
}

const COPY_BYTES = 1 << 20

/** Copies the current content of a file. */
export async function copyContent(from: FileHandle, to: FileHandle): Promise<void> {
  const buffer = new Uint8Array(COPY_BYTES)
  for (let offset = 0; ; ) {
    const { bytesRead } = await from.read(buffer, 0, buffer.byteLength, offset)
    if (bytesRead === 0) return
    offset = await writeAt(to, [buffer.subarray(0, bytesRead)], offset)
  }
}

/** Forces the names in a folder to the disk. */
export async function fsyncFolder(folder: string): Promise<void> {
  // Windows can't open a folder; its file system keeps the order of such changes by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** @returns how many bytes there were from `position` on, as far as there is room for them */
export async function readAt(full: string, bytes: Uint8Array, position: number): Promise<number> {
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

type OpenedFile = {
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

/** A file that was removed or moved can still be written to, but the bytes would be lost. */
async function requireSameFile({ full, ino, dev }: OpenedFile): Promise<void> {
  const found = await lstat(full)
  if (found.ino !== ino || found.dev !== dev) {
    throw Object.assign(new Error('another file took its place'), { code: 'ENOENT' })
  }
}
