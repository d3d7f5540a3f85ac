import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type InspectedShard, inspectShard, type ShardReader } from '../../src/load/inspect/index.ts'
import { typeName } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { type CellValue, type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import {
  anyRowGroups,
  csvFormats,
  encodePages,
  encodeShard,
  everyColumn,
  parquetFormats,
  plainCsv,
  rowsOf,
  snappyParquet,
} from './shard-fixture.ts'

/** A shard in memory that is streamed in chunks of the given size. */
function readerOf(bytes: Uint8Array, piece = 1000): ShardReader {
  return {
    size: bytes.length,
    slice: async (start, end) => bytes.subarray(start, end),
    async *stream() {
      for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
    },
  }
}

describe.each([...parquetFormats, ...csvFormats])('$kind by $engine, $compression', (format) => {
  const columns: InspectedShard['columns'] = everyColumn.map(({ name, type, nullable }) => ({
    name,
    type: typeName(type, format),
    nullable,
  }))

  it('reads the number of rows, the columns, and the watched strings in order', async () => {
    await fc.assert(
      fc.asyncProperty(anyRowGroups, fc.integer({ min: 1, max: 300 }), async (rowGroups, piece) => {
        const bytes = await encodePages(format, rowGroups)
        const rows = rowsOf(rowGroups)
        const seen: Record<string, (string | null)[]> = { name: [], note: [] }
        const found = await inspectShard(readerOf(bytes, piece), format, {
          columns: everyColumn,
          watch: ['name', 'note', 'no_such_column'],
          onText: (column, value) => seen[column]!.push(value),
        })
        expect(found).toEqual({ rows: rows.length, columns })
        // CSV cannot have a NUL.
        const textOf = (value: CellValue | undefined): CellValue | undefined =>
          format.kind === 'csv' && typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value
        expect(seen).toEqual({
          name: rows.map(({ name }) => textOf(name)),
          note: rows.map(({ note }) => textOf(note)),
        })
      }),
      { numRuns: cases(30, 5) },
    )
  })
})

it('reads strings as they were before formulas were escaped', async () => {
  const columns = specs({ note: 'text?' })
  const notes = ['=1', '+****1', '-x', '@****b', '\tx', '\rx', "'x", "'=1", "''=1", "''x", 'x', null, '']
  const format = { ...plainCsv, escapeFormulas: true }
  const recordBatch = recordBatchOf(
    columns,
    notes.map((note): Row => ({ note })),
  )
  const seen: (string | null)[] = []
  await inspectShard(readerOf(await encodeShard(format, columns, [[recordBatch]])), format, {
    columns,
    watch: ['note'],
    onText: (_, value) => seen.push(value),
  })
  expect(seen).toEqual(notes)
})

it('reads the columns of the file, not those of the request', async () => {
  const held = specs({ id: 'int64?', extra: 'text' })
  const recordBatch = recordBatchOf(held, [{ id: 1, extra: 'x' }])
  const options = { columns: specs({ id: 'int64', hash: 'text?' }), watch: [], onText: () => {} }
  const parquet = await inspectShard(
    readerOf(await encodeShard(snappyParquet, held, [[recordBatch]])),
    snappyParquet,
    options,
  )
  expect(parquet.columns).toEqual([
    { name: 'id', type: 'INT64', nullable: true },
    { name: 'extra', type: 'STRING', nullable: false },
  ])
  const csv = await inspectShard(
    readerOf(await encodeShard(plainCsv, held, [[recordBatch]])),
    plainCsv,
    options,
  )
  expect(csv.columns.map(({ name }) => name)).toEqual(['id', 'extra'])
})
