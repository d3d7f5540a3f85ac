import fc from 'fast-check'
import { expect, it } from 'vitest'
import { AggregateTally, DATA_SET_LIMITS, withoutAggregates } from '../../src/core/index.ts'

type Row = { readonly day: number; readonly source: string | null; readonly hash: string | null }

const row = fc.record({
  day: fc.integer({ min: 0, max: 4 }),
  source: fc.constantFrom('a', 'b', 'c', null),
  hash: fc.constantFrom('md5', null),
})

function aggregatesOf(rows: readonly Row[], limits = DATA_SET_LIMITS) {
  const tally = new AggregateTally(limits)
  tally.addNulls('hash', 0)
  for (const { day, source, hash } of rows) {
    tally.rows++
    tally.days.add(day, 1)
    tally.sources.add(source, 1)
    tally.hashTypes.add(hash, 1)
    if (hash === null) tally.addNulls('hash', 1)
  }
  const { rows: count, days, sources, hash_types, nulls } = tally.aggregates()
  const sorted = ({
    counts,
    others,
  }: {
    counts: readonly (readonly [unknown, number])[]
    others: number
  }) => ({
    counts: counts.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    others,
  })
  return { rows: count, days: sorted(days), sources: sorted(sources), hash_types: sorted(hash_types), nulls }
}

it('without some rows aggregates are those of the others', () => {
  fc.assert(
    fc.property(fc.array(row), fc.array(row), (gone, left) => {
      const found = withoutAggregates(aggregatesOf([...gone, ...left]) as never, aggregatesOf(gone) as never)
      expect(found).toEqual(aggregatesOf(left))
    }),
  )
})

it('they are not known where rows were counted under other keys', () => {
  const rows = (source: string, count: number) =>
    Array.from({ length: count }, () => ({ day: 0, source, hash: null }))
  const all = aggregatesOf([...rows('a', 3), ...rows('b', 2)])
  expect(withoutAggregates(all as never, aggregatesOf(rows('c', 1)) as never)).toBe(null)
  // A part of one source is among the others.
  const folded = { ...all, sources: { counts: [['a', 3]], others: 2 } }
  const found = withoutAggregates(folded as never, aggregatesOf(rows('b', 1)) as never)
  expect(found?.sources).toEqual({ counts: [['a', 3]], others: 1 })
})
