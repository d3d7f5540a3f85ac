import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseRows, countRows, type RowChoice, takeRows } from '../../src/load/take-rows.ts'
import { encodeRecordBatch } from '../../src/rows/index.ts'
import { anyRecordBatch } from '../rows/record-batches.ts'
import { cases } from '../support/thorough.ts'
import { everyColumn, farRow, groupings, ordinaryRow } from './any-rows.ts'
import { recordBatchOf } from './record-batch-builder.ts'

/** A choice of this many rows: a range, or indexes in any order. */
function choiceOf(rows: number): fc.Arbitrary<RowChoice> {
  const range = fc
    .tuple(fc.nat({ max: rows }), fc.nat({ max: rows }))
    .map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }))
  const scattered = fc.uint32Array({ minLength: 1, maxLength: 25, max: rows - 1 })
  return fc.oneof(range, scattered).filter((choice) => countRows(choice) > 0)
}

const framedTwice = anyRecordBatch
  .filter(({ rows, groups }) => rows > 0 && groups.every(({ size }) => size > 0))
  .chain((recordBatch) =>
    choiceOf(recordBatch.rows).chain((first) =>
      fc.record({
        recordBatch: fc.constant(recordBatch),
        first: fc.constant(first),
        second: choiceOf(countRows(first)),
      }),
    ),
  )

describe('rows that are taken from a record batch', () => {
  it('are the record batch that they would be alone', () => {
    const some = fc
      .oneof(
        fc.array(ordinaryRow, { minLength: 1, maxLength: 12 }),
        fc.array(fc.oneof(ordinaryRow, farRow), { minLength: 1, maxLength: 12 }),
      )
      .chain((rows) =>
        fc.record({ rows: fc.constant(rows), choice: choiceOf(rows.length), groups: groupings }),
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
})

function numbersOf(rows: RowChoice): number[] {
  if (rows instanceof Uint32Array) return [...rows]
  return Array.from({ length: rows.to - rows.from }, (_, at) => rows.from + at)
}
