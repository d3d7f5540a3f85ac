import fc from 'fast-check'
import { expect, it } from 'vitest'
import { AggregateTally, formatTimestamp, nameInAggregates } from '../../src/core/index.ts'
import { aggregateRows } from '../../src/load/aggregate-rows.ts'
import { recordBatchOf, specs } from './record-batch-builder.ts'

const COLUMNS = specs({ imported_at: 'timestamp', hash_type: 'text', source_name: 'text', domain: 'text' })
const name = fc.option(fc.constantFrom('', 'a', 'ä'.repeat(150), 'b', 'c'), { nil: null })
const DAY = 86_400_000_000
const time = fc.oneof(
  fc.integer({ min: -DAY * 90_000, max: DAY * 90_000 }),
  // Right before and at a midnight.
  fc
    .tuple(fc.integer({ min: -20_000, max: 90_000 }), fc.constantFrom(-1, 0, 1))
    .map(([day, more]) => day * DAY + more),
)
const row = fc.record({ imported_at: time, hash_type: name, source_name: name, domain: name })

/** The number of a day, derived from the formatted time. */
const dayOf = (micros: number): number =>
  Date.parse(`${formatTimestamp(micros).slice(0, 10)}T00:00:00Z`) / 86_400_000

function counted<T>(values: readonly T[]): Map<T, number> {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

const inAggregates = (text: string | null): string | null => (text === null ? null : nameInAggregates(text))

it('aggregates of record batches equal those of their rows, with tables of distinct values or without', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(row, { minLength: 1, maxLength: 20 }), { maxLength: 4 }),
      fc.boolean(),
      (pages, table) => {
        const rows = pages.flat()
        const recordBatches = pages.map((page) =>
          recordBatchOf(COLUMNS, page, table ? [['hash_type'], ['source_name']] : []),
        )
        const sums = aggregateRows(recordBatches)
        expect(sums.rows).toBe(rows.length)
        expect(new Map(sums.days.counts)).toEqual(counted(rows.map(({ imported_at }) => dayOf(imported_at))))
        expect(new Map(sums.sources.counts)).toEqual(
          counted(rows.map(({ source_name }) => inAggregates(source_name))),
        )
        expect(new Map(sums.hash_types.counts)).toEqual(
          counted(rows.map(({ hash_type }) => inAggregates(hash_type))),
        )
        for (const column of rows.length === 0
          ? []
          : (['hash_type', 'source_name', 'domain', 'imported_at'] as const)) {
          expect(sums.nulls[column]).toBe(rows.filter((each) => each[column] === null).length)
        }
      },
    ),
    { numRuns: 200 },
  )
})

it('only a limited number of names is counted separately, and no row is lost', () => {
  const tally = new AggregateTally({ days: 10, sources: 10, hashTypes: 10 })
  for (let i = 0; i < 1000; i++) tally.sources.add(`source-${i}`, 1)
  tally.sources.add('the largest', 500)
  for (let i = 0; i < 1000; i++) tally.sources.add(`source-${i}`, 1)
  const { counts, others } = tally.aggregates().sources
  expect(counts.length).toBeLessThanOrEqual(20)
  expect(new Map(counts).get('the largest')).toBe(500)
  expect(counts.reduce((sum, [, rows]) => sum + rows, others)).toBe(2500)
})
