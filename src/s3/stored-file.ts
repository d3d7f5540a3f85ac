import { randomBytes } from 'node:crypto'
import type { Bucket } from './requests/bucket.ts'
import { Conflict } from './requests/connection.ts'

/**
 * A file in the bucket. Objects can't grow. So a file that grows is a first object and one more object, a segment, for
 * each later fsync. A segment is named after its offset in the file: `<name>.segments/<epoch>/<16 digits>`. The epoch is
 * metadata of the first object. Writing the first object anew gives it another epoch, which drops all segments of the
 * old one in the same step. A segment is written only where there is none, so of two owners that append at the same
 * offset one fails: the epoch is the fencing token of the file. An empty segment ends an epoch: nothing is appended to
 * it any more.
 */
export type StoredFile = {
  /** The name of its first object. */
  readonly name: string
  readonly etag: string
  readonly epoch: string | null
  readonly segments: readonly Segment[]
  readonly size: number
  /** Whether its epoch has ended. */
  readonly isSealed: boolean
  /** Segments of earlier epochs. */
  readonly stale: readonly string[]
  /** Empty segments that ended epochs, this one's among them. */
  readonly seals: readonly string[]
}

type Segment = { readonly name: string; readonly start: number; readonly size: number }

const SEGMENTS = '.segments'

/** Whether a name in a folder is that of the segments of a file there. */
export function holdsSegments(name: string): boolean {
  return name.endsWith(SEGMENTS)
}

/** The file that a segment belongs to; null when the name is not a segment's. */
export function fileOfSegment(name: string): string | null {
  const end = name.lastIndexOf(`${SEGMENTS}/`)
  return end < 0 ? null : name.slice(0, end)
}

export function segmentName(name: string, epoch: string, start: number): string {
  return `${name}${SEGMENTS}/${epoch}/${String(start).padStart(16, '0')}`
}

export function newEpoch(): string {
  return randomBytes(6).toString('hex')
}

/** @returns null when there is none */
export async function findFile(bucket: Bucket, name: string): Promise<StoredFile | null> {
  const head = await bucket.head(name)
  if (head === null) return null
  const segments: Segment[] = [{ name, start: 0, size: head.size }]
  let size = head.size
  let isSealed = false
  const stale: string[] = []
  const seals: string[] = []
  if (head.epoch !== null) {
    for await (const segment of bucket.objects(`${name}${SEGMENTS}/`)) {
      const isNext = segment.name === segmentName(name, head.epoch, size)
      if (segment.size === 0) {
        isSealed ||= isNext
        seals.push(segment.name)
      } else if (isNext && !isSealed) {
        segments.push({ ...segment, start: size })
        size += segment.size
      } else stale.push(segment.name)
    }
  }
  return { name, etag: head.etag, epoch: head.epoch, segments, size, isSealed, stale, seals }
}

// Held in memory at a time.
const RANGE_BYTES = 8 << 20
const AT_ONCE = 8

/**
 * Bytes `[start, end)` of a file, in chunks.
 * @throws Conflict when it was written anew in the meantime
 */
export async function* streamFile(
  bucket: Bucket,
  { etag, segments }: StoredFile,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const ranges: { segment: Segment; from: number; to: number }[] = []
  for (const segment of segments) {
    const last = Math.min(end - segment.start, segment.size)
    for (let from = Math.max(0, start - segment.start); from < last; from += RANGE_BYTES) {
      ranges.push({ segment, from, to: Math.min(from + RANGE_BYTES, last) })
    }
  }
  const read = async ({ segment, from, to }: (typeof ranges)[number]): Promise<Uint8Array<ArrayBuffer>> => {
    const isFirst = segment.start === 0 && segment === segments[0]
    const isWhole = from === 0 && to === segment.size
    const bytes = await bucket.get(segment.name, isWhole ? null : [from, to], isFirst ? etag : null)
    if (bytes === null || bytes.byteLength !== to - from) throw new Conflict(segment.name)
    return bytes
  }
  // Segments are prefetched: many are small, and each is a round trip.
  const prefetched: { bytes: Promise<Uint8Array<ArrayBuffer>>; size: number }[] = []
  let waiting = 0
  for (const range of ranges) {
    const size = range.to - range.from
    while (prefetched.length > 0 && (prefetched.length >= AT_ONCE || waiting + size > 2 * RANGE_BYTES)) {
      const next = prefetched.shift()!
      waiting -= next.size
      yield await next.bytes
    }
    const bytes = read(range)
    bytes.catch(() => {})
    prefetched.push({ bytes, size })
    waiting += size
  }
  for (const { bytes } of prefetched) yield await bytes
}

/** Bytes `[start, end)` of a file, as far as there are any. */
export async function readFile(
  bucket: Bucket,
  file: StoredFile,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const stop = Math.min(end, file.size)
  const only = file.segments.length === 1
  const bytes = new Uint8Array(Math.max(0, stop - start))
  let offset = 0
  for await (const chunk of streamFile(bucket, file, start, stop)) {
    if (only && chunk.byteLength === bytes.byteLength) return chunk
    bytes.set(chunk, offset)
    offset += chunk.byteLength
  }
  return bytes
}

/** Removes all objects of a file but the first. */
export function removeBehind(bucket: Bucket, { segments, stale, seals }: StoredFile): Promise<void> {
  return bucket.removeAll([...segments.slice(1).map((segment) => segment.name), ...stale, ...seals])
}
