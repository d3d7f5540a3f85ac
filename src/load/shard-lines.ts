import type { Span, Sums } from '../core/index.ts'
import type { JsonValue } from './encode/index.ts'

/** What has to be on record about shards before it counts. The names are those of the checkpoint's lines. */
export type ShardLine =
  | { readonly kind: 'open'; readonly shard: number; readonly folder: string; readonly part: number }
  | ChunkLine
  | SealLine
  /** What the rows of the shards come to that become whole with it. */
  | ({ readonly kind: 'sums' } & Sums)

export type SealLine = {
  readonly kind: 'seal'
  readonly shard: number
  readonly path: string
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
  readonly partitions: string[]
  readonly imported_at: Span | null
  /** Characters that the format has no place for, and that were replaced; absent: none. */
  readonly replaced?: number | undefined
}

export type ChunkLine = {
  readonly kind: 'chunk'
  readonly shard: number
  /** Generation of the row log that the chunk holds. */
  readonly generation: number
  readonly offset: number
  readonly bytes: number
  readonly crc: number
  readonly rows: number
  readonly meta: JsonValue
  /** As in the seal. */
  readonly replaced?: number | undefined
  readonly sums?: Sums | undefined
}

/** Where rows of a page stand. */
export type PlacedRows = {
  /** The key of their partition. */
  readonly partition: string
  readonly shard: number
  readonly rows: number
  readonly importedAt: Span | null
}

/** Rows of a page in the row log of an open shard. */
export type LoggedRows = {
  readonly shard: number
  readonly generation: number
  readonly end: number
  readonly rows: number
}

/** Where the rows of a page stand: all of them by partition, and those that are in a row log. */
export type Places = { readonly placed: readonly PlacedRows[]; readonly logged: readonly LoggedRows[] }

/** What a checkpoint knows about a shard that is still open. */
export type RestoredShard = {
  readonly shard: number
  readonly folder: string
  readonly part: number
  readonly partitions: ReadonlySet<string>
  readonly importedAt: Span | null
  readonly chunks: readonly ChunkLine[]
  /** Of the row log that holds what is not in a chunk. */
  readonly generation: number
  readonly records: readonly { readonly rows: number; readonly end: number }[]
}
