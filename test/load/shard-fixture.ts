import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import zlib from 'node:zlib'
import type { JS } from '@duckdb/node-api'
import fc from 'fast-check'
import { type Format, int64 } from '../../src/core/index.ts'
import { createEncoder } from '../../src/load/encode/create-encoder.ts'
import type { WrittenRowGroup } from '../../src/load/encode/encoder.ts'
import type { ShardReader } from '../../src/load/inspect/index.ts'
import type { ColumnSpec, RecordBatch } from '../../src/rows/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { sql as rowsInDuckdb } from '../support/read-shards.ts'
import { some } from '../support/thorough.ts'
import { anyPage, everyColumn, type Page } from './any-rows.ts'
import type { CellValue, Row } from './record-batch-builder.ts'

export { everyColumn, type Page } from './any-rows.ts'

export const hasZstd = Reflect.get(zlib, 'zstdCompressSync') !== undefined

type Parquet = Extract<Format, { kind: 'parquet' }>
type Csv = Extract<Format, { kind: 'csv' }>

export const createdBy = 'spillway version 1.2.3 (build 0123456789abcdef)'

export const snappyParquet: Parquet = {
  kind: 'parquet',
  engine: 'columnar',
  compression: 'snappy',
  encodings: 'compact',
}
export const plainCsv: Csv = { kind: 'csv', engine: 'columnar', compression: 'none', escapeFormulas: false }

const lite = { ...snappyParquet, engine: 'parquetjs-lite', encodings: 'plain' } as const

const compressions = ['none', 'snappy', 'gzip', ...(hasZstd ? (['zstd'] as const) : [])] as const

/**
 * Every Parquet engine with its encodings; under `npm run test:all` with all compressions that it and this Node.js
 * support.
 */
export const parquetFormats: readonly Parquet[] = [
  ...(['compact', 'plain'] as const).flatMap((encodings) =>
    some(encodings === 'compact' ? compressions : compressions.toReversed(), 2).map(
      (compression): Parquet => ({ ...snappyParquet, encodings, compression }),
    ),
  ),
  ...some(['snappy', 'none', 'gzip'] as const, 1).map((compression): Parquet => ({ ...lite, compression })),
]

export const csvFormats: readonly Csv[] = (['columnar', 'csv-stringify'] as const).flatMap((engine) =>
  some(engine === 'columnar' ? (['gzip', 'none'] as const) : (['none', 'gzip'] as const), 1).map(
    (compression): Csv => ({ ...plainCsv, engine, compression }),
  ),
)

export async function encodeShard(
  format: Format,
  columns: readonly ColumnSpec[],
  rowGroups: readonly (readonly RecordBatch[])[],
  fileMetadata: Readonly<Record<string, string>> = {},
): Promise<Buffer> {
  const encoder = await createEncoder({ format, columns, createdBy, fileMetadata })
  const parts: Uint8Array[] = [encoder.header()]
  const written: WrittenRowGroup[] = []
  let offset = parts[0]!.length
  for (const recordBatches of rowGroups) {
    const { bytes, rows, chunks } = await encoder.encode(recordBatches)
    written.push({ offset, rows, chunks })
    parts.push(Uint8Array.from(bytes))
    offset += bytes.length
  }
  parts.push(await encoder.footer(written))
  return Buffer.concat(parts)
}

export function shardFolder(): (name: string, bytes: Uint8Array) => string {
  const folder = scratchFolder()
  return (name, bytes) => {
    const path = join(folder, name)
    writeFileSync(path, bytes)
    return path
  }
}

/** A shard in memory that is streamed in chunks of the given size. */
export function readerOf(bytes: Uint8Array, piece = 1000): ShardReader {
  return {
    size: bytes.length,
    slice: async (start, end) => bytes.subarray(start, end),
    async *stream() {
      for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
    },
  }
}

/** Queries DuckDB; rows are plain values, in order of the columns. */
export async function sql(query: string): Promise<JS[][]> {
  return (await rowsInDuckdb(query)).map((row) => Object.values(row))
}

/**
 * The cells that DuckDB reads from a table: timestamps as microseconds, and strings from their bytes, as the
 * binding drops a byte order mark.
 */
export async function cellsInDuckdb(table: string, columns: readonly ColumnSpec[]): Promise<CellValue[][]> {
  const terms = columns.map(({ name, type }) => {
    if (type === 'timestamp') return `epoch_us("${name}")`
    if (type === 'text') return `hex("${name}")`
    return type === 'list' ? `list_transform("${name}", lambda item: hex(item))` : `"${name}"`
  })
  const rows = await sql(`select ${terms.join()} from ${table}`)
  const text = (value: JS): string | null =>
    value === null ? null : Buffer.from(String(value), 'hex').toString()
  return rows.map((row) =>
    row.map((value, i): CellValue => {
      if (Array.isArray(value)) return value.map(text)
      if (columns[i]!.type === 'text') return text(value)
      return typeof value === 'boolean' || value === null ? value : int64(BigInt(String(value)))
    }),
  )
}

/** Row groups of pages, with empty ones among them. */
export const anyRowGroups: fc.Arbitrary<Page[][]> = fc.array(fc.array(anyPage, { maxLength: 3 }), {
  minLength: 1,
  maxLength: 3,
})

export function encodePages(format: Format, rowGroups: readonly (readonly Page[])[]): Promise<Buffer> {
  const recordBatches = rowGroups.map((pages) => pages.map(({ recordBatch }) => recordBatch))
  return encodeShard(format, everyColumn, recordBatches)
}

export function rowsIn(rowGroups: readonly (readonly Page[])[]): Row[] {
  return rowGroups.flat().flatMap(({ rows }) => rows)
}

export function cells(rows: readonly Row[], columns: readonly ColumnSpec[] = everyColumn): CellValue[][] {
  return rows.map((row) => columns.map(({ name }) => row[name] ?? null))
}
