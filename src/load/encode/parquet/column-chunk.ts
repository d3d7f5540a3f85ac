import type { Encoding } from 'hyparquet'
import type { Int64 } from '../../../core/index.ts'

/** Longer strings get no min/max statistics: they would make the footer large. */
export const MAX_STATISTIC_BYTES = 256

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
