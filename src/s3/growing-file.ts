import { randomBytes } from 'node:crypto'
import type { KnownObjects } from './known-objects.ts'
import { Conflict } from './requests/connection.ts'
import { findFile, readFile, type StoredFile, segmentName } from './stored-file.ts'

/** Adds a segment to a file. @throws Conflict when another owner has added one there, or has ended the epoch */
export async function addSegment(
  objects: KnownObjects,
  file: StoredFile,
  bytes: Uint8Array,
): Promise<StoredFile> {
  const { name, epoch, size } = file
  if (epoch === null) throw new Error('a file without an epoch')
  const segment = { name: segmentName(name, epoch, size), start: size, size: bytes.byteLength }
  await objects.bucket.put(segment.name, bytes, { condition: 'absent' })
  const grown = { ...file, segments: [...file.segments, segment], size: size + bytes.byteLength }
  // The first object of a public name is as it was: so is the ETag that this owner last saw.
  if (objects.isOwn(name)) objects.note(grown)
  return grown
}

/** Removes what is behind the first `size` bytes. */
export async function truncate(objects: KnownObjects, file: StoredFile, size: number): Promise<StoredFile> {
  const { bucket } = objects
  const [first, ...others] = file.segments
  // From the end, so that at no time a missing segment has others behind it.
  await bucket.removeAll([...file.stale, ...file.seals])
  for (const segment of others.toReversed()) {
    if (segment.start >= size) await bucket.remove(segment.name)
    else if (segment.start + segment.size > size) {
      const kept = await bucket.get(segment.name, [0, size - segment.start])
      if (kept === null) throw new Conflict(segment.name)
      await bucket.put(segment.name, kept)
    }
  }
  let { etag } = file
  if (first!.size > size) {
    const condition = await objects.conditionFor(file.name)
    const kept = await readFile(bucket, file, 0, size)
    etag = await bucket.put(file.name, kept, { epoch: file.epoch, condition })
  }
  const segments = file.segments
    .filter(({ start }, i) => i === 0 || start < size)
    .map((segment) => ({ ...segment, size: Math.min(segment.size, size - segment.start) }))
  const shorter = { ...file, etag, segments, size, isSealed: false, stale: [], seals: [] }
  objects.note(shorter)
  return shorter
}

/** Writes many segments anew as two objects, of a file that no former owner appends to. */
export async function gather(objects: KnownObjects, file: StoredFile): Promise<StoredFile> {
  const { name, epoch, size, seals } = file
  const gathered = await withNewEpoch(objects, file)
  if (epoch !== null) await objects.bucket.removeAll([...seals, segmentName(name, epoch, size)])
  return gathered
}

/** Ends the epoch of a file that may grow, and writes its content anew with another one. */
export async function replaceByCopy(objects: KnownObjects, path: string): Promise<void> {
  const file = await findFile(objects.bucket, objects.nameOf(path))
  if (file !== null && file.epoch !== null) await withNewEpoch(objects, file)
}

async function withNewEpoch(objects: KnownObjects, found: StoredFile): Promise<StoredFile> {
  const { bucket } = objects
  const { name } = found
  let file = found
  while (file.epoch !== null && !file.isSealed) {
    try {
      const end = segmentName(name, file.epoch, file.size)
      await bucket.put(end, new Uint8Array(), { condition: 'absent' })
      file = { ...file, isSealed: true }
    } catch (error) {
      if (!(error instanceof Conflict)) throw error
      // The former owner appended first: its segment counts.
      const grown = await findFile(bucket, name)
      if (grown?.epoch !== file.epoch) throw error
      file = grown
    }
  }
  const bytes = await readFile(bucket, file, 0, file.size)
  // Cut at a random offset, so that the first object has another ETag although the content is the same. A former owner's
  // conditional write on the old ETag then fails.
  const behind = 1 + (randomBytes(4).readUInt32LE() % Math.max(1, Math.min(bytes.byteLength, 1 << 20)))
  const cut = Math.max(0, bytes.byteLength - behind)
  objects.saw(name, file.etag)
  let renewed = await objects.write(name, [bytes.subarray(0, cut)], true)
  if (cut < bytes.byteLength) renewed = await addSegment(objects, renewed, bytes.subarray(cut))
  await bucket.removeAll(file.segments.slice(1).map((segment) => segment.name))
  return renewed
}
