import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Format, type Int64, int64 } from '../../src/core/index.ts'
import { readBatches } from '../../src/load/inspect/index.ts'
import { type ColumnSpec, rowsOf } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import * as large from './large-row-group.ts'
import type { CellValue, Row } from './record-batch-builder.ts'
import {
  anyRowGroups,
  cells,
  cellsInDuckdb,
  encodePages,
  encodeShard,
  everyColumn,
  parquetFormats,
  readerOf,
  rowsIn,
  shardFolder,
  snappyParquet,
} from './shard-fixture.ts'

const write = shardFolder()

/** The cells that commands read from the shard, by hyparquet. */
async function readByCommands(bytes: Uint8Array, format: Format): Promise<CellValue[][]> {
  const rows: Row[] = []
  for await (const batch of readBatches(readerOf(bytes), format, everyColumn, 100))
    rows.push(...rowsOf(batch))
  return cells(rows)
}

type Reader = {
  getCursor(): { next(): Promise<Record<string, unknown> | null> }
  close(): Promise<void>
}

/** An old reader with the first encodings alone; it has no type declarations for reading. */
const { ParquetReader } = createRequire(import.meta.url)('parquetjs-lite') as {
  ParquetReader: { openBuffer(file: Buffer): Promise<Reader> }
}

/** The cells that parquetjs-lite reads from the file, timestamps in whole milliseconds, which is its precision. */
async function readByParquetjs(file: Buffer, columns: readonly ColumnSpec[]): Promise<CellValue[][]> {
  const reader = await ParquetReader.openBuffer(file)
  const cursor = reader.getCursor()
  const rows: CellValue[][] = []
  for (let row = await cursor.next(); row !== null; row = await cursor.next()) {
    const found = row
    rows.push(columns.map(({ name, type }) => cell(found[name] ?? null, type)))
  }
  await reader.close()
  return rows
}

function cell(value: unknown, type: ColumnSpec['type']): CellValue {
  if (value === null) return null
  if (type === 'int64') return int64(value as bigint)
  if (type === 'timestamp') return int64(BigInt((value as Date).getTime()) * 1000n)
  if (type === 'boolean') return value === true
  if (type === 'text') return String(value)
  const { list = [] } = value as { list?: readonly { readonly element?: string }[] }
  return list.map(({ element }) => element ?? null)
}

/** Cells with their times cut to milliseconds: downwards by the engine that stores no more, by that reader to zero. */
function cut(rows: readonly CellValue[][], columns: readonly ColumnSpec[], by: 'engine' | 'reader') {
  return rows.map((row) =>
    row.map((value, i): CellValue => {
      if (columns[i]!.type !== 'timestamp' || value === null) return value
      const rest = BigInt(value as Int64) % 1000n
      return int64(BigInt(value as Int64) - rest - (by === 'engine' && rest < 0n ? 1000n : 0n))
    }),
  )
}

// By DuckDB, and by commands; with plain encodings by an old reader as well.
it.each(parquetFormats)('$engine, $encodings, $compression: is read back unchanged', async (format) => {
  const { engine, encodings, compression } = format
  const isPlain = engine === 'columnar' && encodings === 'plain' && compression !== 'zstd'
  await fc.assert(
    fc.asyncProperty(anyRowGroups, async (rowGroups) => {
      const bytes = await encodePages(format, rowGroups)
      const all = cells(rowsIn(rowGroups))
      const expected = engine === 'columnar' ? all : cut(all, everyColumn, 'engine')
      expect(await cellsInDuckdb(`'${write('shard.parquet', bytes)}'`, everyColumn)).toEqual(expected)
      expect(await readByCommands(bytes, format)).toEqual(expected)
      if (isPlain) expect(await readByParquetjs(bytes, everyColumn)).toEqual(cut(all, everyColumn, 'reader'))
    }),
    { numRuns: isPlain ? cases(60, 8) : cases(15, 6) },
  )
})

it('a large row group in plain encodings is read back unchanged by parquetjs-lite', async () => {
  const { columns, rows, recordBatches } = large
  const rowGroups = [recordBatches.slice(0, 2), recordBatches.slice(2)]
  const file = await encodeShard({ ...snappyParquet, encodings: 'plain' }, columns, rowGroups)
  expect(await readByParquetjs(file, columns)).toEqual(cut(cells(rows, columns), columns, 'reader'))
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
