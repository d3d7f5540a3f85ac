import { createRequire } from 'node:module'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Format, int64 } from '../../src/core/index.ts'
import type { ColumnSpec } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import * as large from './large-row-group.ts'
import type { CellValue, Row } from './record-batch-builder.ts'
import {
  anyRowGroups,
  cells,
  encodePages,
  encodeShard,
  everyColumn,
  parquetFormats,
  rowsOf,
  snappyParquet,
} from './shard-fixture.ts'

type Reader = {
  getCursor(): { next(): Promise<Record<string, unknown> | null> }
  close(): Promise<void>
}

/** An old reader with the first encodings alone; it has no type declarations for reading. */
const { ParquetReader } = createRequire(import.meta.url)('parquetjs-lite') as {
  ParquetReader: { openBuffer(file: Buffer): Promise<Reader> }
}

/** The cells that parquetjs-lite reads from the file, timestamps as milliseconds, which is its precision. */
async function read(file: Buffer, columns: readonly ColumnSpec[]): Promise<CellValue[][]> {
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
  if (type === 'timestamp') return (value as Date).getTime()
  if (type === 'boolean') return value === true
  if (type === 'text') return String(value)
  const { list = [] } = value as { list?: readonly { readonly element?: string }[] }
  return list.map(({ element }) => element ?? null)
}

function inMilliseconds(rows: readonly Row[], columns: readonly ColumnSpec[]): CellValue[][] {
  return cells(rows, columns).map((row) =>
    row.map((value, i) => {
      if (columns[i]!.type !== 'timestamp') return value
      return typeof value === 'number' || typeof value === 'bigint' ? Number(BigInt(value) / 1000n) : value
    }),
  )
}

const plainFormats = parquetFormats.filter(
  ({ engine, encodings, compression }) =>
    engine === 'columnar' && encodings === 'plain' && compression !== 'zstd',
)

describe.each(plainFormats)('plain encodings, $compression', (format) => {
  it('are read back unchanged by parquetjs-lite', async () => {
    await fc.assert(
      fc.asyncProperty(anyRowGroups, async (rowGroups) => {
        const file = await encodePages(format, rowGroups)
        expect(await read(file, everyColumn)).toEqual(inMilliseconds(rowsOf(rowGroups), everyColumn))
      }),
      { numRuns: cases(60, 8) },
    )
  })
})

describe('a row group of many pages, dictionaries of many sizes, and long runs', () => {
  const { columns, rows, recordBatches } = large
  const rowGroups = [recordBatches.slice(0, 2), recordBatches.slice(2)]

  it('are read back unchanged', async () => {
    const format: Format = { ...snappyParquet, encodings: 'plain' }
    const found = await read(await encodeShard(format, columns, rowGroups), columns)
    expect(found).toEqual(inMilliseconds(rows, columns))
  })

  it('are refused by such readers in compact encodings', async () => {
    await expect(read(await encodeShard(snappyParquet, columns, rowGroups), columns)).rejects.toMatch(
      'invalid encoding',
    )
  })
})
