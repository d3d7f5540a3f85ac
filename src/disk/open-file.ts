import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

// A last name that is a link is not followed, and a pipe does not make its reader wait for a writer. Windows knows
// neither.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants

/** Opens a file of the data set, and nothing else that may stand there. */
export async function openFile(full: string, flags: number, mode?: number): Promise<FileHandle> {
  const handle = await open(full, flags | O_NOFOLLOW | O_NONBLOCK, mode)
  // What is made here, and here alone, is a file.
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

export async function writeAt(
  handle: FileHandle,
  chunks: readonly Uint8Array[],
  position: number,
): Promise<number> {
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
export async function writeChunks(handle: FileHandle, chunks: Iterable<string | Uint8Array>): Promise<void> {
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

const COPY_BYTES = 1 << 20

/** Copies all that a file holds by now. */
export async function copyContent(from: FileHandle, to: FileHandle): Promise<void> {
  const room = new Uint8Array(COPY_BYTES)
  for (let at = 0; ; ) {
    const { bytesRead } = await from.read(room, 0, room.byteLength, at)
    if (bytesRead === 0) return
    at = await writeAt(to, [room.subarray(0, bytesRead)], at)
  }
}

export async function flushFolder(folder: string): Promise<void> {
  // Windows can't open a folder; its file system keeps the order of such changes by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
