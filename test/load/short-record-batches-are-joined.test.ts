import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeRecordBatches } from '../../src/load/encode/decode-record-batches.ts'
import { countRows, type RowChoice, takeRows } from '../../src/load/take-rows.ts'
import { encodeRecordBatch, type RecordBatch } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { everyColumn, farRow, groupings, ordinaryRow } from './any-rows.ts'
import { cellsOf } from './cells.ts'
import { type Row, recordBatchOf } from './record-batch-builder.ts'

const page = fc.array(fc.oneof({ weight: 9, arbitrary: ordinaryRow }, farRow), { minLength: 1, maxLength: 4 })
const pages = fc.record({
  pages: fc.array(page, { minLength: 1, maxLength: 12 }),
  groups: fc.array(groupings, { minLength: 2, maxLength: 2 }),
  /** The first page in which other columns share a table. */
  regrouped: fc.nat({ max: 12 }),
})

describe('short record batches that are decoded together', () => {
  it('have all rows in order', async () => {
    await fc.assert(
      fc.asyncProperty(pages, async ({ pages, groups, regrouped }) => {
        const recordBatches = pages.map((rows, number) =>
          recordBatchOf(everyColumn, rows, groups[number < regrouped ? 0 : 1]!),
        )
        const decoded = await decodedOf(recordBatches)
        expect(decoded.flatMap(cellsOf)).toEqual(recordBatches.flatMap(cellsOf))
        expect(decoded.reduce((sum, { rows }) => sum + rows, 0)).toBe(pages.flat().length)
        for (const recordBatch of decoded) expectEntriesOnce(recordBatch)
      }),
      { numRuns: cases(450, 50) },
    )
  })

  it('become few', async () => {
    expect(await joined(Array.from({ length: 1000 }, (_, id) => numbered(id)))).toEqual([256, 256, 256, 232])
  })

  it('are joined neither with long ones nor with those that have larger integers', async () => {
    const long = { ...numbered(3), name: 'x'.repeat(1 << 16) }
    const large = { ...numbered(6), id: 2n ** 60n }
    const rows = [numbered(1), numbered(2), long, numbered(4), numbered(5), large, numbered(7)]
    expect(await joined(rows)).toEqual([2, 1, 2, 1, 1])
  })
})

/** What columns of a group have in common is there once: no two entries are alike, and each has a row. */
function expectEntriesOnce({ groups, columns }: RecordBatch): void {
  for (const [number, { size, indices }] of groups.entries()) {
    const ofGroup = columns.filter(({ group }) => group === number)
    // The values of the group by entry, as rows of their own.
    const entries = ofGroup.map((column) => ({ ...column, group: null }))
    expect(
      new Set(cellsOf({ rows: size, groups: [], columns: entries }).map((cells) => inspect(cells))).size,
    ).toBe(size)
    expect(new Set(indices ?? [0]).size).toBe(size)
  }
}

/** Rows of each record batch after decoding one batch per row. */
async function joined(rows: readonly Row[]): Promise<number[]> {
  const decoded = await decodedOf(rows.map((row) => recordBatchOf(everyColumn, [row], [['name', 'note']])))
  return decoded.map(({ rows }) => rows)
}

async function decodedOf(recordBatches: readonly RecordBatch[]): Promise<RecordBatch[]> {
  const decoded: RecordBatch[] = []
  for await (const each of decodeRecordBatches(recordBatches.map((each) => encodeRecordBatch(each))))
    decoded.push(each)
  return decoded
}

function numbered(id: number): Row {
  const common = { count: null, moment: 1, seen: null, sure: true, flag: null, note: null, tags: null }
  return { ...common, id, name: 'a', labels: [] }
}

/** A choice of this many rows: a range, or indexes in any order. */
function choiceOf(rows: number): fc.Arbitrary<RowChoice> {
  const range = fc
    .tuple(fc.nat({ max: rows }), fc.nat({ max: rows }))
    .map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }))
  const scattered = fc.uint32Array({ minLength: 1, maxLength: 25, max: rows - 1 })
  return fc.oneof(range, scattered).filter((choice) => countRows(choice) > 0)
}

it('rows that are taken from a record batch are the record batch that they would be alone', () => {
  const some = fc
    .oneof(
      fc.array(ordinaryRow, { minLength: 1, maxLength: 12 }),
      fc.array(fc.oneof(ordinaryRow, farRow), { minLength: 1, maxLength: 12 }),
    )
    .chain((rows) => fc.record({ rows: fc.constant(rows), choice: choiceOf(rows.length), groups: groupings }))
  fc.assert(
    fc.property(some, ({ rows, choice, groups }) => {
      // Repeated rows give tables.
      const twice = [...rows, ...rows]
      const taken = takeRows(recordBatchOf(everyColumn, twice, groups), choice)
      const alone = numbersOf(choice).map((row) => twice[row]!)
      expect(taken).toEqual(recordBatchOf(everyColumn, alone, groups))
      expect(encodeRecordBatch(taken)).toEqual(encodeRecordBatch(recordBatchOf(everyColumn, alone, groups)))
    }),
    { numRuns: cases(450, 50) },
  )
})

function numbersOf(rows: RowChoice): number[] {
  if (rows instanceof Uint32Array) return [...rows]
  return Array.from({ length: rows.to - rows.from }, (_, at) => rows.from + at)
}
