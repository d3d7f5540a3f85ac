import type { Encoding } from 'hyparquet'
import type { Format, Int64 } from '../../core/index.ts'
import type { ColumnSpec, RecordBatch } from '../../rows/index.ts'

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

export type MinMax =
  | { readonly min: Int64; readonly max: Int64 }
  | { readonly min: string; readonly max: string }

/** The footer's data about one column of a row group. Offsets count from the start of the row group. */
export type ColumnChunk = {
  /** Number of values, nulls and empty lists. */
  readonly entries: number
  readonly nulls: number
  readonly encoding: Encoding
  /** Offset of the dictionary page; null: there is none. */
  readonly dictionary: number | null
  /** Offset of the first data page. */
  readonly data: number
  /** Bytes of all pages with their headers, before and after compression. */
  readonly raw: number
  readonly stored: number
  /** null: there are no values, or they may not be shown. */
  readonly minMax: MinMax | null
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
