import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  lstatSync,
  openSync,
  readSync,
  type Stats,
  writevSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { inGroups } from '../core/index.ts'
import { unlessAbsent } from './storage-error.ts'

// Opening fails on a link, and does not wait for the writer of a pipe. Windows has neither flag.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants

const READ = constants.O_RDONLY | O_NOFOLLOW | O_NONBLOCK

/** A stream of Node takes as much for each file, and these are mostly smaller. */
const CHUNK_BYTES = 1 << 20

/** @throws EISDIR, EFTYPE where something other than a file has the name */
export async function* chunksOf(full: string): AsyncGenerator<Uint8Array> {
  const handle = await open(full, READ)
  try {
    const found = await handle.stat()
    requireFile(found)
    for (let at = 0; at < found.size; ) {
      const chunk = new Uint8Array(Math.min(found.size - at, CHUNK_BYTES))
      const { bytesRead } = await handle.read(chunk, 0, chunk.byteLength, at)
      if (bytesRead === 0) return
      yield chunk.subarray(0, bytesRead)
      at += bytesRead
    }
  } finally {
    await handle.close()
  }
}

function requireFile(found: Stats): void {
  if (found.isFile()) return
  throw Object.assign(new Error('no file'), { code: found.isDirectory() ? 'EISDIR' : 'EFTYPE' })
}

// Calls that concern the memory of the system are synchronous: in Node's threads they take ten times as long.

/** null: nothing has the name. */
export function statOf(full: string): Stats | null {
  return unlessAbsent(() => lstatSync(full, { throwIfNoEntry: false }) ?? null)
}

/** Creates a file that must not exist. @returns its descriptor */
export function createFile(full: string, mode: number): number {
  return openSync(full, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
}

/** Opens a file to append to it. @returns its descriptor */
export function openToAppend(full: string): number {
  return openSync(full, constants.O_WRONLY | constants.O_APPEND | O_NOFOLLOW | O_NONBLOCK)
}

/** As many chunks as a system writes with one call. */
const CHUNKS_AT_ONCE = 1024

/** Appends chunks, many with one call: a manifest has a million lines. */
export function writeChunks(file: number, chunks: Iterable<string | Uint8Array>): void {
  for (const some of inGroups(chunks, CHUNKS_AT_ONCE))
    write(
      file,
      some.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk)),
    )
}

function write(file: number, chunks: readonly Uint8Array[]): void {
  let left = chunks.filter(({ byteLength }) => byteLength > 0)
  while (left.length > 0) {
    let written = writevSync(file, left)
    left = left.flatMap((chunk) => {
      const start = Math.min(written, chunk.byteLength)
      written -= start
      return start === chunk.byteLength ? [] : [chunk.subarray(start)]
    })
  }
}

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
export function readRange(full: string, start: number, end: number): Uint8Array {
  const file = openSync(full, READ)
  try {
    const found = fstatSync(file)
    requireFile(found)
    const length = Math.max(0, Math.min(end, found.size) - start)
    const bytes = new Uint8Array(length)
    let done = 0
    for (let read = -1; done < length && read !== 0; done += read)
      read = readSync(file, bytes, done, length - done, start + done)
    return done === length ? bytes : bytes.slice(0, done)
  } finally {
    closeSync(file)
  }
}
