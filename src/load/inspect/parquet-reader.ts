import zlib from 'node:zlib'
import {
  type AsyncBuffer,
  type ColumnMetaData,
  type Compressors,
  type DecodedArray,
  type FileMetaData,
  type ParquetParsers,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
} from 'hyparquet'
import { snappyUncompress } from 'hysnappy'
import { ExportError, int64, numberOf } from '../../core/index.ts'
import type { ColumnSpec, ColumnStatistics } from '../../rows/index.ts'
import { damaged, type ShardReader, withoutQuotes } from './shard-reader.ts'

/** hyparquet's own function for Snappy walks back and forth without end over a literal whose length is damaged. */
export const decompressors: Compressors = {
  SNAPPY: snappyUncompress,
  GZIP: (input, outputLength) => zlib.gunzipSync(input, limit(outputLength)),
  ZSTD: (input, outputLength) => zstdDecompress()(input, limit(outputLength)),
}

/** The defaults of hyparquet drop byte order marks and the microseconds of timestamps. */
const PARSERS: Partial<ParquetParsers> = {
  timestampFromMicroseconds: (micros) => int64(micros),
  timestampFromMilliseconds: (millis) => int64(millis * 1000n),
  stringFromBytes: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(),
}
/** Larger than the footer of a shard of a few row groups: one read. */
const FIRST_READ = 1 << 16

/** hyparquet reads whole pages: a column of a row group at a time. @throws ExportError `damaged` */
export function openParquet(reader: ShardReader) {
  return open(reader).catch((error: unknown) => {
    throw withoutQuotes(error, 'It is not a complete Parquet file')
  })
}

async function open(reader: ShardReader) {
  const file: AsyncBuffer = {
    byteLength: reader.size,
    slice: async (start, end = reader.size) => new Uint8Array(await reader.slice(start, end)).buffer,
  }
  const metadata = await parquetMetadataAsync(file, {
    initialFetchSize: FIRST_READ,
    geoparquet: false,
    parsers: PARSERS,
  })
  let end = 0
  const rowGroups = metadata.row_groups.map(({ num_rows }) => {
    const rows = Number(num_rows)
    const start = end
    end += rows
    return {
      rows,
      /** @param label its name in messages @throws ExportError `damaged`, also when it has another number of rows */
      async column(name: string, label = `Column ${name}`): Promise<readonly DecodedArray[]> {
        const values = await readColumn(file, metadata, name, start, start + rows).catch((error: unknown) => {
          throw withoutQuotes(error, `${label} cannot be read`)
        })
        const found = values.reduce((sum, { length }) => sum + length, 0)
        if (found !== rows) throw damaged(`${label} has ${numberOf(found, 'row')} instead of ${rows}`)
        return values
      },
    }
  })
  return { metadata, columns: parquetSchema(metadata).children, rowGroups }
}

async function readColumn(
  file: AsyncBuffer,
  metadata: FileMetaData,
  column: string,
  rowStart: number,
  rowEnd: number,
): Promise<DecodedArray[]> {
  const values: DecodedArray[] = []
  if (rowStart === rowEnd) return values
  await parquetRead({
    file,
    metadata,
    columns: [column],
    rowStart,
    rowEnd,
    compressors: decompressors,
    geoparquet: false,
    parsers: PARSERS,
    onChunk: ({ columnData }) => values.push(columnData),
  })
  return values
}

/** Limits a page to the size in its header. */
function limit(outputLength: number): { maxOutputLength: number } {
  return { maxOutputLength: Math.max(1, outputLength) }
}

type ZstdDecompress = (input: Uint8Array, options: { maxOutputLength: number }) => Uint8Array

function zstdDecompress(): ZstdDecompress {
  // Node.js has zstd from 22.15 on. The types of the oldest supported version lack it.
  const { zstdDecompressSync: decompress } = zlib as { zstdDecompressSync?: ZstdDecompress }
  if (decompress !== undefined) return decompress
  throw new ExportError({
    kind: 'config',
    what: `Node.js ${process.versions.node} cannot read zstd`,
    where: 'load.compression',
    next: 'Use Node.js 22.15 or later.',
  })
}

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
