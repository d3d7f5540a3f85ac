import * as z from 'zod'
import { ExportError, type JsonValue } from '../../../../core/index.ts'

const extreme = z.union([z.number(), z.string()])
const count = z.number().int().nonnegative()

const columnChunkMeta = z.strictObject({
  /** Values, nulls and empty lists. */
  entries: count,
  nulls: count,
  encoding: z.enum([
    'PLAIN',
    'DELTA_BINARY_PACKED',
    'DELTA_LENGTH_BYTE_ARRAY',
    'RLE_DICTIONARY',
    'PLAIN_DICTIONARY',
  ]),
  /** Where the dictionary page starts, from the start of the row group; null: there is none. */
  dictionary: count.nullable(),
  /** Where the first data page starts. */
  data: count,
  /** Bytes of all pages with their headers, before and after compression. */
  raw: count,
  stored: count,
  extremes: z.strictObject({ min: extreme, max: extreme }).nullable(),
  /** Whether the rows are known to be in order of this column. */
  ascending: z.boolean(),
  /** Where the bloom filter lies; null: there is none. */
  bloom: z.strictObject({ offset: count, length: count }).nullable(),
})

const rowGroupMeta = z.array(columnChunkMeta)

/** What the footer must know of one column of a row group; offsets count from the start of the row group. */
export type ColumnChunkMeta = z.infer<typeof columnChunkMeta>
export type RowGroupMeta = readonly ColumnChunkMeta[]

/** @throws ExportError `damaged` when the journal holds something else */
export function parseRowGroupMeta(meta: JsonValue, columns: number): RowGroupMeta {
  const parsed = rowGroupMeta.safeParse(meta)
  if (parsed.success && parsed.data.length === columns) return parsed.data
  throw new ExportError(
    'damaged',
    'The checkpoint describes a row group in a way that cannot be understood',
    '',
    'Start again with --fresh.',
  )
}
