import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type BufferPool, freshBuffers } from '../core/index.ts'

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

/** Creates a file that must not exist. */
export function createFile(full: string, mode: number): Promise<FileHandle> {
  return open(full, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
}

/** Chunks up to this size are copied together: a separate write takes as long as copying so much. */
const SMALL_BYTES = 64 * 1024

/** Appends chunks, small ones together, so that a manifest of a million lines is not a million writes. */
export async function writeChunks(handle: FileHandle, chunks: Iterable<string | Uint8Array>): Promise<void> {
  let small: Uint8Array[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    await write(handle, small.length === 1 ? small[0]! : Buffer.concat(small))
    small = []
    bytes = 0
  }
  for (const chunk of chunks) {
    const buffer = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    if (bytes + buffer.byteLength > SMALL_BYTES && bytes > 0) await flush()
    small.push(buffer)
    bytes += buffer.byteLength
  }
  if (bytes > 0) await flush()
}

async function write(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    done += (await handle.write(bytes, done, bytes.byteLength - done)).bytesWritten
  }
}

/** Forces the names in a folder to the disk. */
export async function fsyncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder; its file system keeps the order of such changes by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
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
