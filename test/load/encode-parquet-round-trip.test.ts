import fc from 'fast-check'
import { parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { type ColumnSpec, type Format, int64 } from '../../src/core/index.ts'
import { decompressors } from '../../src/load/inspect/parquet-reader.ts'
import { cases } from '../support/thorough.ts'
import { type CellValue, type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import {
  anyRowGroups,
  cells,
  cellsInDuckdb,
  duckdb,
  encodeShard,
  everyColumn,
  parquetFormats,
  rowsOf,
  shardFolder,
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
        const bytes = await encodeShard(
          format,
          everyColumn,
          rowGroups.map((pages) => pages.map(({ recordBatch }) => recordBatch)),
        )
        const expected = stored(rowsOf(rowGroups), format)
        expect(await read(bytes, everyColumn)).toEqual(expected)
        expect(await readByHyparquet(bytes, everyColumn)).toEqual(expected)
      }),
      { numRuns: cases(15, 6) },
    )
  })

  it('may have no rows, one row, or a column of nulls', async () => {
    const columns = specs({
      id: 'int64',
      moment: 'timestamp?',
      flag: 'boolean?',
      note: 'text?',
      tags: 'list?',
    })
    const row: Row = { id: 1, moment: null, flag: null, note: null, tags: null }
    for (const rows of [[], [row], Array.from({ length: 100 }, () => row)]) {
      for (const groups of [[], [columns.map(({ name }) => name)]]) {
        const bytes = await encodeShard(format, columns, [[recordBatchOf(columns, rows, groups)]])
        expect(await read(bytes, columns)).toEqual(cells(rows, columns))
        expect(await readByHyparquet(bytes, columns)).toEqual(cells(rows, columns))
      }
    }
  })
})
