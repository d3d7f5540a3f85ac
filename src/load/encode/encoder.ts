import type { ColumnSpec, Format, JsonValue, RecordBatch } from '../../core/index.ts'

/**
 * Turns record batches into the bytes of one shard. Pure: no I/O and no clock, so it runs in any thread.
 *
 * A shard is the header, then row groups, then the footer; everything before the footer can be appended to
 * a file as it comes, and the footer is made from what the row groups left in the journal.
 */
export type ShardEncoder = {
  /** The bytes that a shard starts with. */
  header(): Uint8Array
  /**
   * Encodes the rows of some record batches, in order, as one row group: that of Parquet, or a block of CSV lines.
   * The result is valid until the next call.
   * @throws ExportError `data` when Parquet is to hold a null in a column that may not be null, or the
   * row group would pass 2 GB; never names a value
   */
  encode(recordBatches: readonly RecordBatch[]): Promise<EncodedRowGroup>
  /**
   * The bytes that a shard ends with, for these row groups in order.
   * @throws ExportError `damaged` when `meta` is not what {@link ShardEncoder.encode} gave out
   */
  footer(rowGroups: readonly WrittenRowGroup[]): Promise<Uint8Array>
}

export type EncodedRowGroup = {
  /** In shared memory, or in a buffer of their own. */
  readonly bytes: Uint8Array
  readonly rows: number
  /** Metadata for the footer; a few kB at most. */
  readonly meta: JsonValue
  /** Number of characters that the format can't hold and that were replaced; absent: none. */
  readonly replaced?: number
}

export type WrittenRowGroup = {
  /** Offset of the row group in the shard, in bytes. */
  readonly offset: number
  readonly rows: number
  readonly meta: JsonValue
}

/** The settings that encode a shard. Plain data: it is sent to a worker thread. */
export type EncodePlan = {
  readonly format: Format
  readonly columns: readonly ColumnSpec[]
  /** What wrote the file, for the Parquet footer. */
  readonly createdBy: string
  /** Key-value pairs of the Parquet footer; CSV has none. */
  readonly fileMetadata: Readonly<Record<string, string>>
}

/**
 * Rows that are worth encoding together. DuckDB, Spark and Trino work well with Parquet row groups of about a
 * hundred thousand; lines of CSV gain nothing by waiting for each other.
 */
export function rowGroupRows(format: Format): number {
  return format.kind === 'parquet' ? 100_000 : 10_000
}

/** How the names of shards end. */
export function shardExtension(format: Format): string {
  switch (format.kind) {
    case 'parquet':
      return '.parquet'
    case 'csv':
      return format.compression === 'gzip' ? '.csv.gz' : '.csv'
  }
}
