import { type Bucket, Conflict } from '../requests/index.ts'

/**
 * A file as it lies in the bucket. Objects can't grow, so one that does is its first object and, for every flush that
 * follows, another one named after the byte that it begins with: `<name>.pieces/<epoch>/<16 digits>`. The first object
 * carries the epoch: whoever writes it anew gives it another, and with that all pieces behind the old one are gone in
 * the same step. A piece is made only where there is none yet, so that of two who go on from the same byte one fails:
 * that is what fences off a run that was taken over. An empty piece ends an epoch: nothing is added to it any more.
 */
export type StoredFile = {
  readonly etag: string
  readonly epoch: string | null
  readonly pieces: readonly Piece[]
  readonly size: number
  /** Whether its epoch was ended. */
  readonly isSealed: boolean
  /** Pieces of earlier epochs. */
  readonly stale: readonly string[]
  /** What ended epochs, this one's among them. */
  readonly seals: readonly string[]
}

export type Piece = { readonly name: string; readonly start: number; readonly size: number }

const PIECES = '.pieces'

/** Whether a name in a folder stands for the pieces of another one there. */
export function holdsPieces(name: string): boolean {
  return name.endsWith(PIECES)
}

/** The file that a piece belongs to; null when a name is not that of one. */
export function ownerOfPiece(name: string): string | null {
  const at = name.lastIndexOf(`${PIECES}/`)
  return at < 0 ? null : name.slice(0, at)
}

export function pieceName(name: string, epoch: string, start: number): string {
  return `${name}${PIECES}/${epoch}/${String(start).padStart(16, '0')}`
}

/** @returns null when there is none */
export async function findFile(bucket: Bucket, name: string): Promise<StoredFile | null> {
  const head = await bucket.head(name)
  if (head === null) return null
  const pieces: Piece[] = [{ name, start: 0, size: head.size }]
  let size = head.size
  let isSealed = false
  const stale: string[] = []
  const seals: string[] = []
  if (head.epoch !== null) {
    for await (const piece of bucket.objects(`${name}${PIECES}/`)) {
      const isNext = piece.name === pieceName(name, head.epoch, size)
      if (piece.size === 0) {
        isSealed ||= isNext
        seals.push(piece.name)
      } else if (isNext && !isSealed) {
        pieces.push({ ...piece, start: size })
        size += piece.size
      } else stale.push(piece.name)
    }
  }
  return { etag: head.etag, epoch: head.epoch, pieces, size, isSealed, stale, seals }
}

// So much is held at a time.
const RANGE_BYTES = 8 << 20
const AT_ONCE = 8

/**
 * Bytes `[start, end)` of a file, in chunks.
 * @throws Conflict when it was written anew meanwhile
 */
export async function* streamFile(
  bucket: Bucket,
  { etag, pieces }: StoredFile,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const ranges: { piece: Piece; from: number; to: number }[] = []
  for (const piece of pieces) {
    const last = Math.min(end - piece.start, piece.size)
    for (let from = Math.max(0, start - piece.start); from < last; from += RANGE_BYTES) {
      ranges.push({ piece, from, to: Math.min(from + RANGE_BYTES, last) })
    }
  }
  const read = async ({ piece, from, to }: (typeof ranges)[number]): Promise<Uint8Array<ArrayBuffer>> => {
    const isFirst = piece.start === 0 && piece === pieces[0]
    const isWhole = from === 0 && to === piece.size
    const bytes = await bucket.get(piece.name, isWhole ? null : [from, to], isFirst ? etag : null)
    if (bytes === null || bytes.byteLength !== to - from) throw new Conflict(piece.name)
    return bytes
  }
  // Pieces are asked for ahead: many are small, and each is a round trip.
  const ahead: { bytes: Promise<Uint8Array<ArrayBuffer>>; size: number }[] = []
  let waiting = 0
  for (const range of ranges) {
    const size = range.to - range.from
    while (ahead.length > 0 && (ahead.length >= AT_ONCE || waiting + size > 2 * RANGE_BYTES)) {
      const next = ahead.shift()!
      waiting -= next.size
      yield await next.bytes
    }
    const bytes = read(range)
    bytes.catch(() => {})
    ahead.push({ bytes, size })
    waiting += size
  }
  for (const { bytes } of ahead) yield await bytes
}

/** Bytes `[start, end)` of a file, as far as there are any. */
export async function readFile(
  bucket: Bucket,
  file: StoredFile,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const stop = Math.min(end, file.size)
  const only = file.pieces.length === 1
  const bytes = new Uint8Array(Math.max(0, stop - start))
  let at = 0
  for await (const chunk of streamFile(bucket, file, start, stop)) {
    if (only && chunk.byteLength === bytes.byteLength) return chunk
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}
