import zlib from 'node:zlib'
import {
  type AsyncBuffer,
  type Compressors,
  type DecodedArray,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
  type SchemaTree,
} from 'hyparquet'
import { ExportError, int64, numberOf, TYPE_NAMES } from '../../core/index.ts'
import { damaged, guarded } from './damaged.ts'
import type { InspectedShard, InspectOptions, ShardReader } from './inspector.ts'

/** Decompression by Node.js; hyparquet brings its own for Snappy. */
export const decompressors: Compressors = {
  GZIP: (input, outputLength) => zlib.gunzipSync(input, limit(outputLength)),
  ZSTD: (input, outputLength) => zstdDecompress()(input, limit(outputLength)),
}

const MAGIC = 'PAR1'

/** Reads a Parquet file with hyparquet, one column of one row group after the other. */
export async function inspectParquet(
  reader: ShardReader,
  { watch, onText }: InspectOptions,
): Promise<InspectedShard> {
  const { metadata, schema } = await guarded('It is no whole Parquet file', () => open(reader))
  let rows = 0
  for (const [i, group] of metadata.row_groups.entries()) {
    const count = Number(group.num_rows)
    for (const [j, { name }] of schema.entries()) {
      const which = `Column ${j + 1} of row group ${i + 1}`
      const chunks = await guarded(`${which} cannot be read`, () =>
        readColumn(reader, metadata, name, rows, rows + count),
      )
      const found = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      if (found !== count) throw damaged(`${which} has ${numberOf(found, 'row')} instead of ${count}`)
      if (!watch.includes(name)) continue
      for (const chunk of chunks) for (const value of chunk) onText(name, textOf(value))
    }
    rows += count
  }
  if (BigInt(rows) !== metadata.num_rows) throw damaged('Its row groups do not make up its number of rows')
  return { rows, columns: schema }
}

async function open(
  reader: ShardReader,
): Promise<{ metadata: FileMetaData; schema: InspectedShard['columns'] }> {
  const start = Buffer.from(await reader.slice(0, MAGIC.length))
  if (start.toString('latin1') !== MAGIC) throw damaged('It does not start as a Parquet file')
  const metadata = await parquetMetadataAsync(fileOf(reader), { geoparquet: false })
  const schema = parquetSchema(metadata).children.map((tree) => ({
    name: tree.element.name,
    type: typeName(tree),
    nullable: tree.element.repetition_type === 'OPTIONAL',
  }))
  return { metadata, schema }
}

/** A shard as hyparquet reads one. */
export function fileOf(reader: ShardReader): AsyncBuffer {
  return {
    byteLength: reader.size,
    slice: async (start, end = reader.size) => {
      const bytes = await reader.slice(start, end)
      return new Uint8Array(bytes).buffer
    },
  }
}

/** The values of one column in the rows given, chunk by chunk. */
export async function readColumn(
  reader: ShardReader,
  metadata: FileMetaData,
  column: string,
  rowStart: number,
  rowEnd: number,
): Promise<DecodedArray[]> {
  const chunks: DecodedArray[] = []
  if (rowStart === rowEnd) return chunks
  await parquetRead({
    file: fileOf(reader),
    metadata,
    columns: [column],
    rowStart,
    rowEnd,
    compressors: decompressors,
    geoparquet: false,
    // hyparquet's own drop a byte order mark, and the microseconds of a time.
    parsers: {
      timestampFromMicroseconds: (micros) => int64(micros),
      timestampFromMilliseconds: (millis) => int64(millis * 1000n),
      stringFromBytes: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(),
    },
    onChunk: ({ columnData }) => chunks.push(columnData),
  })
  return chunks
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value)
}

/** The type's name in the manifest, or what the file calls it where the manifest has no name for it. */
function typeName({ element, children }: SchemaTree): string {
  const { type, converted_type, logical_type } = element
  if (converted_type === 'LIST') {
    const item = children[0]?.children[0]
    return item === undefined ? 'LIST' : `LIST<${typeName(item)}>`
  }
  if (logical_type?.type === 'TIMESTAMP') {
    return `TIMESTAMP(${logical_type.unit}, ${logical_type.isAdjustedToUTC ? 'UTC' : 'local'})`
  }
  if (converted_type === 'UTF8') return TYPE_NAMES.text
  return converted_type ?? type ?? 'STRUCT'
}

/** A page never grows beyond what its header says. */
function limit(outputLength: number): { maxOutputLength: number } {
  return { maxOutputLength: Math.max(1, outputLength) }
}

type ZstdDecompress = (input: Uint8Array, options: { maxOutputLength: number }) => Uint8Array

function zstdDecompress(): ZstdDecompress {
  const decompress: unknown = Reflect.get(zlib, 'zstdDecompressSync')
  if (isZstdDecompress(decompress)) return decompress
  throw new ExportError(
    'config',
    `Node.js ${process.versions.node} cannot read zstd`,
    'load.compression',
    'Use Node.js 22.15 or later.',
  )
}

function isZstdDecompress(value: unknown): value is ZstdDecompress {
  return typeof value === 'function'
}
