import { hashParquetValue, readBloomFilter, sbbfContains } from 'hyparquet/src/bloom.js'
import type { Format } from '../../core/index.ts'
import { openParquet } from './parquet-reader.ts'
import type { ShardReader } from './shard-reader.ts'

/** The most that the header of a bloom filter takes. */
const HEADER_BYTES = 64

/**
 * Whether a shard may hold any of some strings in a column. Bloom filters rule out row groups without reading them.
 * @throws ExportError `damaged` when the footer is not valid
 */
export async function mayHold(
  reader: ShardReader,
  format: Format,
  name: string,
  values: Iterable<string>,
): Promise<boolean> {
  if (format.kind !== 'parquet' || !format.bloomFilters.includes(name)) return true
  const { metadata, columns } = await openParquet(reader)
  const element = columns.find((column) => column.element.name === name)?.element
  if (element === undefined) return true
  const hashes = [...values].map((value) => hashParquetValue(value, element))
  for (const { columns } of metadata.row_groups) {
    const found = columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name)?.meta_data
    if (found?.bloom_filter_offset === undefined) return true
    const start = Number(found.bloom_filter_offset)
    // Not every writer tells the length.
    const length = found.bloom_filter_length ?? (1 << 20) + HEADER_BYTES
    const bytes = new Uint8Array(await reader.slice(start, Math.min(reader.size, start + length)))
    const filter = readBloomFilter({ view: new DataView(bytes.buffer), offset: 0 })
    if (filter === undefined) return true
    if (hashes.some((hash) => hash === undefined || sbbfContains(filter.blocks, hash))) return true
  }
  return false
}
