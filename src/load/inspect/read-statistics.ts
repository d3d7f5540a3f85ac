import { type ColumnMetaData, parquetMetadataAsync } from 'hyparquet'
import type { ColumnSpec, ColumnType } from '../../core/index.ts'
import { damaged, type ShardReader, withoutQuotes } from './shard-reader.ts'

/** Nulls, bytes and bounds of a column, over all row groups of a Parquet shard. */
export type FooterStatistics = {
  readonly name: string
  readonly type: ColumnType
  /** After compression. */
  readonly bytes: number
  readonly nulls: number
  /** Integers and times (in microseconds) are bigints; null: not every row group has them. */
  readonly bounds: { readonly min: bigint | string; readonly max: bigint | string } | null
}

// Larger than the footer of a shard of a few row groups: one read.
const FIRST_READ = 1 << 16

/**
 * Reads what the footer of a Parquet shard says of its columns, except lists, whose counts are of elements.
 * @throws ExportError `damaged` when it is not a Parquet file
 */
export async function readStatistics(
  reader: ShardReader,
  columns: readonly ColumnSpec[],
): Promise<readonly FooterStatistics[]> {
  const file = {
    byteLength: reader.size,
    slice: async (start: number, end = reader.size) => new Uint8Array(await reader.slice(start, end)).buffer,
  }
  const { row_groups } = await parquetMetadataAsync(file, {
    initialFetchSize: FIRST_READ,
    geoparquet: false,
    parsers: {
      timestampFromMicroseconds: (micros: bigint) => micros,
      stringFromBytes: (bytes: Uint8Array) => Buffer.from(bytes).toString(),
    },
  }).catch((error: unknown) => {
    throw withoutQuotes(error, 'It is not a complete Parquet file')
  })
  return columns
    .filter(({ type }) => type !== 'list')
    .map(({ name, type }) => {
      const chunks = row_groups.map((group) => {
        const chunk = group.columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name)?.meta_data
        if (chunk === undefined) throw damaged(`It has no column ${name}`)
        return chunk
      })
      return { name, type, ...sumOf(chunks) }
    })
}

function sumOf(chunks: readonly ColumnMetaData[]): Omit<FooterStatistics, 'name' | 'type'> {
  let [bytes, nulls] = [0, 0]
  let bounds: FooterStatistics['bounds'] | undefined
  for (const { statistics, total_compressed_size, num_values } of chunks) {
    const missing = Number(statistics?.null_count ?? 0)
    bytes += Number(total_compressed_size)
    nulls += missing
    // Without a value there are no bounds, and none are needed.
    if (missing === Number(num_values)) continue
    const [min, max] = [boundOf(statistics?.min_value), boundOf(statistics?.max_value)]
    if (bounds === null || min === null || max === null) bounds = null
    else if (bounds === undefined) bounds = { min, max }
    else bounds = { min: least(bounds.min, min), max: greatest(bounds.max, max) }
  }
  return { bytes, nulls, bounds: bounds ?? null }
}

function boundOf(value: unknown): bigint | string | null {
  return typeof value === 'bigint' || typeof value === 'string' ? value : null
}

function least<T extends bigint | string>(a: T, b: T): T {
  return inOrder(a, b) ? a : b
}

function greatest<T extends bigint | string>(a: T, b: T): T {
  return inOrder(a, b) ? b : a
}

/** Strings by their bytes, as in Parquet. */
function inOrder(a: bigint | string, b: bigint | string): boolean {
  if (typeof a === 'string' && typeof b === 'string')
    return Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0
  return a <= b
}
