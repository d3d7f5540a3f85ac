import type { ColumnSpec } from '../../core/index.ts'

/** A shard's bytes, wherever they are. */
export type ShardReader = {
  readonly size: number
  /** The bytes `[start, end)`. */
  slice(start: number, end: number): Promise<Uint8Array>
  /** All bytes, from the first. */
  stream(): AsyncIterable<Uint8Array>
}

export type InspectOptions = {
  /** The columns that the shard should have; a CSV file tells no types, so they are taken from here. */
  readonly columns: readonly ColumnSpec[]
  /** Text columns of which every value is shown to `onText`; those that the shard does not have are passed over. */
  readonly watch: readonly string[]
  readonly onText: (column: string, value: string | null) => void
}

/** What a shard holds. */
export type InspectedShard = {
  readonly rows: number
  readonly columns: readonly {
    readonly name: string
    /** As in the manifest: `STRING`, `TIMESTAMP(MICROS, UTC)` and so on. */
    readonly type: string
    readonly nullable: boolean
  }[]
}
