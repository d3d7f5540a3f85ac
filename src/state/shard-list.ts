import type { Int64Json, SealEntry } from '../core/index.ts'

/** What is on record about a finished shard. */
export type SealedShard = Omit<SealEntry, 'kind'>

/** Finished shards in the order in which they were finished; each is made anew whenever it is asked for. */
export type ShardList = Iterable<SealedShard> & {
  readonly length: number
  /** Of all of them. */
  readonly rows: number
}

/** Shards to a piece. */
const PIECE = 100

type Packed = readonly [
  shard: number,
  path: string,
  rows: number,
  bytes: number,
  sha256: string,
  partitions: readonly string[],
  importedAt: readonly [min: Int64Json, max: Int64Json] | null,
  replaced: number,
]

/**
 * Keeps shards as text, outside the heap: half a million objects that live as long as the run gave the garbage
 * collector nearly as much to do as all else that is done to read a checkpoint.
 */
export class PackedShardList implements ShardList {
  readonly #pieces: Buffer[] = []
  #last: Packed[] = []
  rows = 0

  get length(): number {
    return this.#pieces.length * PIECE + this.#last.length
  }

  push({ shard, path, rows, bytes, sha256, partitions, imported_at, replaced = 0 }: SealedShard): void {
    const importedAt = imported_at === null ? null : ([imported_at.min, imported_at.max] as const)
    this.#last.push([shard, path, rows, bytes, sha256, partitions, importedAt, replaced])
    this.rows += rows
    if (this.#last.length < PIECE) return
    this.#pieces.push(Buffer.from(JSON.stringify(this.#last)))
    this.#last = []
  }

  *[Symbol.iterator](): Generator<SealedShard> {
    for (const piece of this.#pieces) {
      for (const packed of JSON.parse(piece.toString()) as Packed[]) yield unpacked(packed)
    }
    // Whoever goes through it meanwhile gets those that were there when it came to the last piece.
    for (const packed of [...this.#last]) yield unpacked(packed)
  }
}

function unpacked([shard, path, rows, bytes, sha256, partitions, importedAt, replaced]: Packed): SealedShard {
  const imported_at = importedAt === null ? null : { min: importedAt[0], max: importedAt[1] }
  const counted = replaced === 0 ? {} : { replaced }
  return { shard, path, rows, bytes, sha256, partitions, imported_at, ...counted }
}
