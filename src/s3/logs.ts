import { type Log, shorterThanCounted } from '../core/index.ts'
import { addSegment, gather, truncate } from './growing-file.ts'
import type { KnownObjects } from './known-objects.ts'
import { readFile, removeBehind, type StoredFile } from './stored-file.ts'

// Reading a file takes a request for each segment. Files with more segments than this are gathered into fewer objects.
const MAX_SEGMENTS = 250
const MAX_SEGMENTS_WHEN_OPENED = 32
// Appended bytes are written before the fsync when there are so many of them.
const SEGMENT_BYTES = 8 << 20

/** Opens a log after its first `size` bytes; removes what is behind them. */
export async function openLog(objects: KnownObjects, path: string, size: number): Promise<Log> {
  if (size === 0) return growingLog(objects, path, null)
  const name = objects.nameOf(path)
  let file = await longEnough(objects, path, size)
  // Left by a crash. The empty segment that ends an epoch stays: a former owner may still append to it.
  if (!file.isSealed && !objects.isOwn(name)) await objects.bucket.removeAll(file.stale)
  if (file.size > size) file = await truncate(objects, file, size)
  const isScattered = file.segments.length > MAX_SEGMENTS_WHEN_OPENED && !objects.isOwn(name)
  const mayGrow = file.epoch !== null && !file.isSealed
  return growingLog(objects, path, mayGrow && !isScattered ? file : await gather(objects, file))
}

/** Opens a log that is one object, which each fsync writes anew: for short files, and files that others read as they are. */
export async function openSmallLog(objects: KnownObjects, path: string, size: number): Promise<Log> {
  const name = objects.nameOf(path)
  objects.seeAnew(name)
  const file = size === 0 ? await objects.find(name) : await longEnough(objects, path, size)
  let bytes = file === null ? new Uint8Array() : await readFile(objects.bucket, file, 0, size)
  if (file !== null && file.size > size) await objects.write(name, [bytes], false)
  let waiting: Uint8Array[] = []
  const writeOut = async (): Promise<void> => {
    if (waiting.length === 0) return
    const all = Buffer.concat([bytes, ...waiting])
    await objects.write(name, [all], false)
    bytes = all
    waiting = []
  }
  return {
    path,
    get size() {
      return waiting.reduce((sum, { byteLength }) => sum + byteLength, bytes.byteLength)
    },
    async append(chunks) {
      for (const chunk of chunks) waiting.push(Uint8Array.from(chunk))
    },
    fsync: writeOut,
    close: writeOut,
  }
}

async function longEnough(objects: KnownObjects, path: string, size: number): Promise<StoredFile> {
  const name = objects.nameOf(path)
  const file = await objects.find(name)
  // Checked after the read: as long as this is the owner, what was found is no later owner's.
  if (!objects.isOwn(name) || file === null || file.size < size) await objects.owner?.require()
  if (file !== null && file.size >= size) return file
  throw shorterThanCounted(path, file?.size ?? 0, size)
}

/**
 * A log whose every fsync writes one object of a {@link StoredFile}. Appended bytes are in memory until then.
 * @param found null: the log begins empty
 */
function growingLog(objects: KnownObjects, path: string, found: StoredFile | null): Log {
  const name = objects.nameOf(path)
  let file = found
  let waiting: Uint8Array[] = []
  let waitingBytes = 0

  const writeOut = async (): Promise<void> => {
    if (waitingBytes === 0) return
    const bytes = Buffer.concat(waiting)
    file = file === null ? await begin(objects, name, bytes) : await grow(objects, file, bytes)
    waiting = []
    waitingBytes = 0
  }

  return {
    path,
    get size() {
      return (file?.size ?? 0) + waitingBytes
    },
    async append(chunks) {
      for (const chunk of chunks) {
        // The caller may reuse its memory.
        waiting.push(Uint8Array.from(chunk))
        waitingBytes += chunk.byteLength
      }
      if (waitingBytes >= SEGMENT_BYTES) await writeOut()
    },
    fsync: writeOut,
    close: writeOut,
  }
}

/** Writes the first object, with a new epoch; removes what was there. */
async function begin(objects: KnownObjects, name: string, bytes: Uint8Array): Promise<StoredFile> {
  const before = await objects.find(name)
  if (!objects.isOwn(name)) await objects.owner?.require()
  if (before !== null) await removeBehind(objects.bucket, before)
  return objects.write(name, [bytes], true)
}

async function grow(objects: KnownObjects, file: StoredFile, bytes: Uint8Array): Promise<StoredFile> {
  const grown = await addSegment(objects, file, bytes)
  return grown.segments.length > MAX_SEGMENTS ? gather(objects, grown) : grown
}
