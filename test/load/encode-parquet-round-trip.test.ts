import fc from 'fast-check'
import { parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { type Format, int64 } from '../../src/core/index.ts'
import { decompressors } from '../../src/load/inspect/parquet-reader.ts'
import type { ColumnSpec } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import type { CellValue, Row } from './record-batch-builder.ts'
import {
  anyRowGroups,
  cells,
  cellsInDuckdb,
  duckdb,
  encodePages,
  everyColumn,
  parquetFormats,
  rowsOf,
  shardFolder,
  snappyParquet,
} from './shard-fixture.ts'

const write = shardFolder()
const sql = await duckdb()

/** The cells that DuckDB reads from the shard. */
async function read(bytes: Uint8Array, columns: readonly ColumnSpec[]): Promise<CellValue[][]> {
  return cellsInDuckdb(sql, `'${write('shard.parquet', bytes)}'`, columns)
}

/** The cells that hyparquet reads from the shard, timestamps as microseconds. */
async function readByHyparquet(bytes: Uint8Array, columns: readonly ColumnSpec[]): Promise<unknown[][]> {
  const { buffer: file } = new Uint8Array(bytes)

  const rows = await parquetReadObjects({
    file,
    compressors: decompressors,
    parsers: {
      timestampFromMicroseconds: (value) => value,
      timestampFromMilliseconds: (value) => value * 1000n,
      stringFromBytes: (text) => Buffer.from(text).toString(),
    },
  })
  return rows.map((row) =>
    columns.map(({ name }) => (typeof row[name] === 'bigint' ? int64(row[name]) : (row[name] ?? null))),
  )
}

/** The cells as they are stored: one engine stores milliseconds only. */
function stored(
  rows: readonly Row[],
  { engine }: Extract<Format, { kind: 'parquet' }>,
  columns = everyColumn,
) {
  return cells(rows, columns).map((row) =>
    row.map((value, i): CellValue => {
      const isCut = engine === 'parquetjs-lite' && columns[i]!.type === 'timestamp'
      if (!isCut || (typeof value !== 'number' && typeof value !== 'bigint')) return value
      const micros = BigInt(value)
      return int64(micros - (((micros % 1000n) + 1000n) % 1000n))
    }),
  )
}

describe.each(parquetFormats)('parquet by $engine, $encodings, $compression', (format) => {
  it('is read back unchanged by DuckDB and hyparquet', async () => {
    await fc.assert(
      fc.asyncProperty(anyRowGroups, async (rowGroups) => {
        const bytes = await encodePages(format, rowGroups)
        const expected = stored(rowsOf(rowGroups), format)
        expect(await read(bytes, everyColumn)).toEqual(expected)
        expect(await readByHyparquet(bytes, everyColumn)).toEqual(expected)
      }),
      { numRuns: cases(15, 6) },
    )
  })
})

// Memory is reused from column to column and from row group to row group.
it('a shard does not depend on what was encoded before it', async () => {
  await fc.assert(
    fc.asyncProperty(anyRowGroups, anyRowGroups, async (rowGroups, others) => {
      const first = await encodePages(snappyParquet, rowGroups)
      await encodePages(snappyParquet, others)
      expect(Buffer.compare(await encodePages(snappyParquet, rowGroups), first)).toBe(0)
    }),
    { numRuns: cases(200, 40) },
  )
})
