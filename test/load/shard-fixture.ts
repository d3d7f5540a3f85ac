import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import zlib from 'node:zlib'
import { DuckDBInstance, type JS } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterAll } from 'vitest'
import { type ColumnSpec, type Format, type Frame, int64 } from '../../src/core/index.ts'
import { createEncoder, type PlacedChunk } from '../../src/load/encode/index.ts'
import { type CellValue, frameOf, type Row, specs } from './frame-builder.ts'

export const hasZstd = Reflect.get(zlib, 'zstdCompressSync') !== undefined

type Parquet = Extract<Format, { kind: 'parquet' }>
type Csv = Extract<Format, { kind: 'csv' }>

export const createdBy = 'spillway version 1.2.3 (build 0123456789abcdef)'

export const snappyParquet: Parquet = {
  kind: 'parquet',
  engine: 'columnar',
  compression: 'snappy',
  encodings: 'compact',
  bloomFilters: [],
}
export const plainCsv: Csv = { kind: 'csv', engine: 'columnar', compression: 'none', escapeFormulas: false }

const compressions = ['none', 'snappy', 'gzip', ...(hasZstd ? (['zstd'] as const) : [])] as const

/** Every Parquet engine with all encodings and compressions that it and this Node.js know. */
export const parquetFormats: readonly Parquet[] = [
  ...(['compact', 'plain'] as const).flatMap((encodings) =>
    compressions.map((compression): Parquet => ({ ...snappyParquet, encodings, compression })),
  ),
  ...(['none', 'snappy', 'gzip'] as const).map(
    (compression): Parquet => ({
      ...snappyParquet,
      engine: 'parquetjs-lite',
      encodings: 'plain',
      compression,
    }),
  ),
]

export const csvFormats: readonly Csv[] = (['columnar', 'csv-stringify'] as const).flatMap((engine) =>
  (['none', 'gzip'] as const).map((compression): Csv => ({ ...plainCsv, engine, compression })),
)

/** A shard's bytes: one chunk for each list of frames, the chunks' metadata through JSON as in a journal. */
export async function encodeShard(
  format: Format,
  columns: readonly ColumnSpec[],
  chunks: readonly (readonly Frame[])[],
  fileMetadata: Readonly<Record<string, string>> = {},
): Promise<Buffer> {
  const encoder = createEncoder({ format, columns, createdBy, fileMetadata })
  const parts: Uint8Array[] = [encoder.header()]
  const placed: PlacedChunk[] = []
  let offset = parts[0]!.length
  for (const frames of chunks) {
    const { bytes, rows, meta } = await encoder.encode(frames)
    placed.push(JSON.parse(JSON.stringify({ offset, rows, meta })))
    parts.push(Uint8Array.from(bytes))
    offset += bytes.length
  }
  parts.push(await encoder.footer(placed))
  return Buffer.concat(parts)
}

/** A folder for shards that is gone when the test file ends. */
export function shardFolder(): (name: string, bytes: Uint8Array) => string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-encode-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return (name, bytes) => {
    const path = join(folder, name)
    writeFileSync(path, bytes)
    return path
  }
}

/** Asks DuckDB; rows come as plain values, in order of the columns. */
export async function duckdb(): Promise<(sql: string) => Promise<JS[][]>> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  afterAll(() => {
    connection.closeSync()
    instance.closeSync()
  })
  return async (sql) => (await connection.runAndReadAll(sql)).getRowsJS()
}

/**
 * What DuckDB finds in a table: timestamps as microseconds, and texts by way of their bytes, as the
 * binding drops a byte order mark.
 */
export async function cellsInDuckdb(
  sql: (query: string) => Promise<JS[][]>,
  table: string,
  columns: readonly ColumnSpec[],
): Promise<CellValue[][]> {
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

/** A column of every type, null allowed and not. */
export const everyColumn = specs({
  id: 'int64',
  count: 'int64?',
  moment: 'timestamp',
  seen: 'timestamp?',
  sure: 'boolean',
  flag: 'boolean?',
  name: 'text',
  note: 'text?',
  labels: 'list',
  tags: 'list?',
})

// biome-ignore format: one line reads better
const nasty = fc.constantFrom(
  '', ' ', '"', '""', ',', '\n', '\r', '\r\n', '\t', "'", '\\', '\\"', '=1+1', '-1', '@x', '+', 'null', '\ufeffx',
  '\ud7ff', '\ue000', '😀', 'é', '\u2028', '\u0001', '\u007f', '[]', '[REDACTED]', 'a,b\n"c"\r', 'x'.repeat(70),
)
const text = fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 12 }), fc.string({ maxLength: 40 }))
const integer = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -3, max: 300 }),
  fc.constantFrom(0, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 33_880_703_907),
)
/** From the year 1685 to 2255: whole microseconds that a double holds. */
const micros = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -2, max: 2 }),
  fc.constantFrom(-1, 1_721_676_352_893_439, 951_782_399_999_999),
)
const MAX = 2n ** 63n - 1n
const largeInteger = fc
  .oneof(
    fc.bigInt({ min: -MAX - 1n, max: MAX }),
    fc.bigInt({ min: 2n ** 62n, max: 2n ** 62n + 1000n }),
    fc.constantFrom(MAX, -MAX - 1n, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n) - 1n),
  )
  .map(int64)
/** 0001-01-01 to the last microsecond of the year 9999. */
const FIRST = -62_135_596_800_000_000n
const LAST = 253_402_300_799_999_999n
const farMicros = fc
  .oneof(
    fc.bigInt({ min: FIRST, max: LAST }),
    fc.constantFrom(FIRST, FIRST + 1n, LAST, 253_402_214_400_000_000n),
  )
  .map(int64)
const nullable = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(values, { freq: 3 })
const list = fc.array(nullable(text), { maxLength: 4 })

/** Rows of {@link everyColumn}. */
const rowOf = (
  id: fc.Arbitrary<CellValue>,
  count: typeof id,
  moment: typeof id,
  seen: typeof id,
): fc.Arbitrary<Row> =>
  fc.record({
    id,
    count: nullable(count),
    moment,
    seen: nullable(seen),
    sure: fc.boolean(),
    flag: nullable(fc.boolean()),
    name: text,
    note: nullable(text),
    labels: list,
    tags: nullable(list),
  })

const ordinaryRow = rowOf(integer, integer, micros, micros)
/** With numbers that no double holds, in one column or in several. */
const farRow = fc.oneof(
  rowOf(fc.oneof(integer, largeInteger), largeInteger, farMicros, fc.oneof(micros, farMicros)),
  rowOf(largeInteger, integer, micros, farMicros),
)

const groupings = fc.constantFrom<string[][]>(
  [],
  [['note', 'seen', 'flag', 'count']],
  [['name'], ['note', 'tags'], ['moment', 'sure']],
  [everyColumn.map(({ name }) => name)],
)

export type Page = { rows: readonly Row[]; frame: Frame }

const anyPage: fc.Arbitrary<Page> = fc
  .tuple(
    fc.oneof(fc.array(ordinaryRow, { maxLength: 30 }), fc.array(farRow, { maxLength: 30 })),
    fc.integer({ min: 1, max: 5 }),
    groupings,
  )
  .map(([drawn, times, groups]) => {
    // Rows that come again are what dictionaries and runs are made of.
    const rows = drawn.flatMap((row) => Array.from({ length: times }, () => row))
    return { rows, frame: frameOf(everyColumn, rows, groups) }
  })

/** Chunks of pages, with empty ones among them. */
export const anyChunks: fc.Arbitrary<Page[][]> = fc.array(fc.array(anyPage, { maxLength: 3 }), {
  minLength: 1,
  maxLength: 3,
})

export function rowsOf(chunks: readonly (readonly Page[])[]): Row[] {
  return chunks.flat().flatMap(({ rows }) => rows)
}

export function cells(rows: readonly Row[], columns: readonly ColumnSpec[] = everyColumn): CellValue[][] {
  return rows.map((row) => columns.map(({ name }) => row[name] ?? null))
}
