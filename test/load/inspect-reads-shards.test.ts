import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type InspectedShard, inspectShard, type ShardReader } from '../../src/load/inspect/index.ts'
import { typeName } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { type CellValue, recordBatchOf, specs } from './record-batch-builder.ts'
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
      fc.asyncProperty(anyRowGroups, fc.integer({ min: 1, max: 300 }), fc.boolean(), async (...given) => {
        const [rowGroups, piece, escapeFormulas] = given
        const written = format.kind === 'csv' ? { ...format, escapeFormulas } : format
        const bytes = await encodePages(written, rowGroups)
        const rows = rowsOf(rowGroups)
        const seen: Record<string, (string | null)[]> = { name: [], note: [] }
        const found = await inspectShard(readerOf(bytes, piece), written, {
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

it.each([
  [snappyParquet, true, false],
  // Of CSV only the names are in the file.
  [plainCsv, false, true],
] as const)('reads the columns of the file, not those of the request (%#)', async (format, id, extra) => {
  const held = specs({ id: 'int64?', extra: 'text' })
  const bytes = await encodeShard(format, held, [[recordBatchOf(held, [{ id: 1, extra: 'x' }])]])
  const options = { columns: specs({ id: 'int64', hash: 'text?' }), watch: [], onText: () => {} }
  expect((await inspectShard(readerOf(bytes), format, options)).columns).toEqual([
    { name: 'id', type: 'INT64', nullable: id },
    { name: 'extra', type: 'STRING', nullable: extra },
  ])
})
