import type { Span } from '../core/index.ts'
import type { JsonValue } from './encode/index.ts'

/** What has to be on record about shards before it counts. The names are those of the checkpoint's lines. */
export type ShardLine<Page> =
  | { readonly kind: 'open'; readonly shard: number; readonly folder: string; readonly part: number }
  | ({ readonly kind: 'page' } & Page & Place)
  | ChunkLine
  | {
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
      readonly page?: Page
    }

/** Where a page's rows stand until they are part of a whole shard; nowhere when it has none. */
export type Place =
  | { readonly shard: number; readonly log: { readonly generation: number; readonly end: number } }
  | { readonly shard?: never; readonly log?: never }

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
}

/** What a checkpoint knows about a shard that is still open. */
export type RestoredShard = {
  readonly shard: number
  readonly folder: string
  readonly part: number
  readonly pages: readonly {
    readonly partition: string
    readonly rows: number
    readonly generation: number
    readonly end: number
    readonly importedAt: Span | null
  }[]
  readonly chunks: readonly ChunkLine[]
}
