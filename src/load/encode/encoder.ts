import type { Format } from '../../core/index.ts'
import type { ColumnSpec, RecordBatch } from '../../rows/index.ts'
import type { ColumnChunk } from './parquet/column-chunk.ts'

/**
 * Turns record batches into the bytes of one shard. Pure: no I/O and no clock.
 *
 * A shard is the header, then row groups, then the footer. Everything before the footer can be appended to a file as
 * soon as it is encoded.
 */
export type ShardEncoder = {
  /** The first bytes of a shard. */
  header(): Uint8Array
  /**
   * Encodes the rows of some record batches, in order, as one Parquet row group or one block of CSV lines.
   * The result is valid until the next call.
   * @throws ExportError `data` when a Parquet column that may not be null has a null, or the row group would exceed
   *   2 GB; never names a value
   */
  encode(recordBatches: readonly RecordBatch[]): Promise<EncodedRowGroup>
  /** The last bytes of a shard with these row groups, in order. */
  footer(rowGroups: readonly WrittenRowGroup[]): Promise<Uint8Array>
}

export type EncodedRowGroup = {
  readonly bytes: Uint8Array
  readonly rows: number
  /** For the footer of Parquet; CSV has none. */
  readonly chunks: readonly ColumnChunk[]
}

export type WrittenRowGroup = {
  /** Offset of the row group in the shard, in bytes. */
  readonly offset: number
  readonly rows: number
  readonly chunks: readonly ColumnChunk[]
}

/** The settings that encode a shard. */
export type EncodeSettings = {
  readonly format: Format
  readonly columns: readonly ColumnSpec[]
  /** Name and version of the program, for the Parquet footer. */
  readonly createdBy: string
  /** Key-value pairs of the Parquet footer; CSV has none. */
  readonly fileMetadata: Readonly<Record<string, string>>
}

/**
 * Rows of a row group. DuckDB, Spark and Trino work well with Parquet row groups of about a hundred thousand rows. CSV
 * gains nothing from large blocks.
 */
export function rowGroupRows(format: Format): number {
  return format.kind === 'parquet' ? 100_000 : 10_000
}

/** File name extension of shards. */
export function shardExtension(format: Format): string {
  switch (format.kind) {
    case 'parquet':
      return '.parquet'
    case 'csv':
      return format.compression === 'gzip' ? '.csv.gz' : '.csv'
  }
}
