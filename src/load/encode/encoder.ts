import type { Format } from '../../core/index.ts'
import type { ColumnSpec, RecordBatch } from '../../rows/index.ts'
import type { ColumnChunk } from './parquet/column-chunk.ts'

/** Pure: no I/O and no clock. All before the footer can be appended to a file as soon as it is encoded. */
export type ShardEncoder = {
  header(): Uint8Array
  /**
   * Encodes one Parquet row group, or one block of CSV lines. The result is valid until the next call.
   * @throws ExportError `data` when a column that may not be null has a null, or it exceeds 2 GB; never names a value
   */
  encode(recordBatches: readonly RecordBatch[]): Promise<EncodedRowGroup>
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

export type EncodeSettings = {
  readonly format: Format
  readonly columns: readonly ColumnSpec[]
  /** Name and version of the program, for the Parquet footer. */
  readonly createdBy: string
  /** Key-value pairs of the Parquet footer; CSV has none. */
  readonly fileMetadata: Readonly<Record<string, string>>
}

/** DuckDB, Spark and Trino work well with a hundred thousand rows. CSV gains nothing from large blocks. */
export function rowGroupRows(format: Format): number {
  return format.kind === 'parquet' ? 100_000 : 10_000
}

export function shardExtension(format: Format): string {
  switch (format.kind) {
    case 'parquet':
      return '.parquet'
    case 'csv':
      return format.compression === 'gzip' ? '.csv.gz' : '.csv'
  }
}
