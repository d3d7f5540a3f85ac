import zlib from 'node:zlib'
import {
  type AsyncBuffer,
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
