import type { ColumnMetaData } from 'hyparquet'
import type { ColumnSpec, ColumnStatistics } from '../../rows/index.ts'
import { openParquet } from './parquet-reader.ts'
import { damaged, type ShardReader } from './shard-reader.ts'

/** Lists are left out: their counts are of elements. So are nullable columns that the shard lacks. @throws ExportError `damaged` when it is not a Parquet file */
export async function readStatistics(
  reader: ShardReader,
  columns: readonly ColumnSpec[],
): Promise<readonly ColumnStatistics[]> {
  const { metadata } = await openParquet(reader)
  return columns
    .filter(({ type }) => type !== 'list')
    .flatMap(({ name, type, nullable }) => {
      const chunks = metadata.row_groups.flatMap(
        ({ columns }) =>
          columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name)?.meta_data ?? [],
      )
      if (chunks.length === metadata.row_groups.length) return [{ name, type, ...sumOf(chunks) }]
      if (chunks.length > 0 || !nullable) throw damaged(`It has no column ${name}`)
      return []
    })
}

function sumOf(chunks: readonly ColumnMetaData[]): Omit<ColumnStatistics, 'name' | 'type'> {
  let [bytes, nulls] = [0, 0]
  let bounds: ColumnStatistics['bounds'] | undefined
  for (const { statistics, total_compressed_size, num_values } of chunks) {
    const missing = Number(statistics?.null_count ?? 0)
    bytes += Number(total_compressed_size)
    nulls += missing
    // Without a value there are no bounds, and none are needed.
    if (missing === Number(num_values)) continue
    const [min, max] = [boundOf(statistics?.min_value), boundOf(statistics?.max_value)]
    if (bounds === null || min === null || max === null) bounds = null
    else if (bounds === undefined) bounds = { min, max }
    else {
      const { min: least, max: greatest } = bounds
      bounds = { min: inOrder(least, min) ? least : min, max: inOrder(greatest, max) ? max : greatest }
    }
  }
  return { bytes, nulls, bounds: bounds ?? null }
}

function boundOf(value: unknown): bigint | string | null {
  if (typeof value === 'number') return BigInt(value)
  return typeof value === 'bigint' || typeof value === 'string' ? value : null
}

/** Strings by their bytes, as in Parquet. */
function inOrder(a: bigint | string, b: bigint | string): boolean {
  if (typeof a === 'string' && typeof b === 'string')
    return Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0
  return a <= b
}
