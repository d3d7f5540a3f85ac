import { closeSync, constants, fdatasync, fsync, lstatSync, openSync, type Stats, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type BufferPool, freshBuffers } from '../core/index.ts'
import { nullIfAbsent } from './storage-error.ts'

// Opening fails on a link, and does not wait for the writer of a pipe. Windows has neither flag.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants

/** Opens a file of the data set. @throws EISDIR, EFTYPE where something else has its name */
export async function openFile(full: string): Promise<FileHandle> {
  const handle = await open(full, constants.O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const found = await handle.stat()
    if (found.isFile()) return handle
    throw Object.assign(new Error('no file'), { code: found.isDirectory() ? 'EISDIR' : 'EFTYPE' })
  } catch (error) {
    await handle.close()
    throw error
  }
}

/*
 * Calls that only change the memory of the system are synchronous: they take a few microseconds, and in Node's threads
 * ten times as much. Those that wait for the disk are not.
 */

/** null: nothing has the name. */
export function statOf(full: string): Stats | null {
  try {
    return lstatSync(full, { throwIfNoEntry: false }) ?? null
  } catch (error) {
    return nullIfAbsent(error)
  }
}

/** Creates a file that must not exist. @returns its descriptor */
export function createFile(full: string, mode: number): number {
  return openSync(full, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
}

/** Chunks up to this size are copied together: a separate write takes as long as copying so much. */
const SMALL_BYTES = 64 * 1024

/** Appends chunks, small ones together, so that a manifest of a million lines is not a million writes. */
export function writeChunks(file: number, chunks: Iterable<string | Uint8Array>): void {
  let small: Uint8Array[] = []
  let bytes = 0
  const flush = (): void => {
    write(file, small.length === 1 ? small[0]! : Buffer.concat(small))
    small = []
    bytes = 0
  }
  for (const chunk of chunks) {
    const buffer = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    if (bytes + buffer.byteLength > SMALL_BYTES && bytes > 0) flush()
    small.push(buffer)
    bytes += buffer.byteLength
  }
  if (bytes > 0) flush()
}

function write(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.byteLength; ) {
    done += writeSync(file, bytes, done, bytes.byteLength - done)
  }
}

/** Forces the bytes of a file to the disk. */
export function fsyncFile(file: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(file, (error) => (error === null ? resolve() : reject(error)))
  })
}

/** Forces the names in a folder to the disk. */
export async function fsyncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder; its file system keeps the order of such changes by itself.
  if (process.platform === 'win32') return
  const file = openSync(folder, constants.O_RDONLY)
  try {
    await new Promise<void>((resolve, reject) => {
      fsync(file, (error) => (error === null ? resolve() : reject(error)))
    })
  } finally {
    closeSync(file)
  }
}

/** Bytes `[start, end)` of a file, as far as there are any. */
export async function readRange(
  full: string,
  start: number,
  end: number,
  memory: BufferPool = freshBuffers,
): Promise<Uint8Array> {
  const handle = await openFile(full)
  try {
    const { size } = await handle.stat()
    const length = Math.max(0, Math.min(end, size) - start)
    const bytes = new Uint8Array(memory.take(length), 0, length)
    let read = 0
    while (read < bytes.byteLength) {
      const { bytesRead } = await handle.read(bytes, read, bytes.byteLength - read, start + read)
      if (bytesRead === 0) break
      read += bytesRead
    }
    return read === bytes.byteLength ? bytes : bytes.slice(0, read)
  } finally {
    await handle.close()
  }
}
