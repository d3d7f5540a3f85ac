import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseRows, countRows, type RowChoice, takeRows } from '../../src/load/take-rows.ts'
import { decodeRecordBatch, encodeRecordBatch } from '../../src/rows/index.ts'
import { anyRecordBatch } from '../rows/record-batches.ts'
import { cases } from '../support/thorough.ts'
import { everyColumn, farRow, groupings, ordinaryRow } from './any-rows.ts'
import { cellsOf } from './cells.ts'
import { recordBatchOf } from './record-batch-builder.ts'

/** Record batches in which every value of a table is used. */
const soundRecordBatch = anyRecordBatch.filter(
  ({ rows, groups }) => rows === 0 || groups.every(({ size }) => size > 0),
)

/** A choice of this many rows: a range, or indexes in any order. */
function choiceOf(rows: number, least: number): fc.Arbitrary<RowChoice> {
  const range = fc
    .tuple(fc.nat({ max: rows }), fc.nat({ max: rows }))
    .map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }))
  const scattered = fc.uint32Array({
    minLength: rows === 0 ? 0 : least,
    maxLength: rows === 0 ? 0 : 25,
    max: Math.max(0, rows - 1),
  })
  return fc.oneof(range, scattered).filter((choice) => countRows(choice) >= least)
}

/** A record batch, a choice of its rows, and a choice of these. */
const framedTwice = soundRecordBatch
  .filter(({ rows }) => rows > 0)
  .chain((recordBatch) =>
    choiceOf(recordBatch.rows, 1).chain((first) =>
      fc.record({
        recordBatch: fc.constant(recordBatch),
        first: fc.constant(first),
        second: choiceOf(countRows(first), 1),
      }),
    ),
  )
const framed = soundRecordBatch.chain((recordBatch) =>
  fc.record({ recordBatch: fc.constant(recordBatch), rows: choiceOf(recordBatch.rows, 0) }),
)

describe('rows that are taken from a record batch', () => {
  it('have the same values, whatever the choice and its order', () => {
    fc.assert(
      fc.property(framed, ({ recordBatch, rows }) => {
        const all = cellsOf(recordBatch)
        const taken = takeRows(recordBatch, rows)
        expect(taken.rows).toBe(countRows(rows))
        expect(cellsOf(taken)).toEqual(numbersOf(rows).map((row) => all[row]))
        expect(taken.columns.map(({ name, group }) => [name, group])).toEqual(
          recordBatch.columns.map(({ name, group }) => [name, group]),
        )
      }),
      { numRuns: cases(600, 60) },
    )
  })

  it('are the record batch that they would be alone', () => {
    const some = fc
      .oneof(
        fc.array(ordinaryRow, { minLength: 1, maxLength: 12 }),
        fc.array(fc.oneof(ordinaryRow, farRow), { minLength: 1, maxLength: 12 }),
      )
      .chain((rows) =>
        fc.record({ rows: fc.constant(rows), choice: choiceOf(rows.length, 1), groups: groupings }),
      )
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

  it('are the same after one step or two', () => {
    fc.assert(
      fc.property(framedTwice, ({ recordBatch, first, second }) => {
        const numbers = numbersOf(first)
        const atOnce = Uint32Array.from(numbersOf(second), (row) => numbers[row]!)
        expect(takeRows(takeRows(recordBatch, first), second)).toEqual(takeRows(recordBatch, atOnce))
        if (second instanceof Uint32Array) return
        const chosen = chooseRows(first, second.from, second.to)
        expect(numbersOf(chosen)).toEqual([...atOnce])
        expect(takeRows(recordBatch, chosen)).toEqual(takeRows(recordBatch, atOnce))
      }),
      { numRuns: cases(600, 60) },
    )
  })

  it('are unchanged after encoding and decoding, and do not change the record batch', () => {
    fc.assert(
      fc.property(framed, ({ recordBatch, rows }) => {
        const before = encodeRecordBatch(recordBatch)
        const taken = takeRows(recordBatch, rows)
        expect(decodeRecordBatch(encodeRecordBatch(taken))).toEqual(taken)
        expect(encodeRecordBatch(recordBatch)).toEqual(before)
        expect(encodeRecordBatch(takeRows(decodeRecordBatch(before), rows))).toEqual(encodeRecordBatch(taken))
      }),
      { numRuns: cases(450, 50) },
    )
  })
})

function numbersOf(rows: RowChoice): number[] {
  if (rows instanceof Uint32Array) return [...rows]
  return Array.from({ length: rows.to - rows.from }, (_, at) => rows.from + at)
}
