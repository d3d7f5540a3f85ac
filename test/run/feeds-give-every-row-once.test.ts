import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cases, some } from '../support/thorough.ts'
import { feedWorld, sorted } from './feed-world.ts'

const feeds = [
  ['the tenant', '', null],
  ['an identifier, newest first', 'identifiers: [2]', 2],
  ['an identifier, oldest first', 'identifiers: [2]', 2],
] as const
test.for(some(feeds, 2))('every run adds what is new of %s', async ([name, extract, identifier]) => {
  const identifierOrder = name.endsWith('oldest first') ? 'asc' : 'desc'
  const world = await feedWorld(extract, { lateRate: 0.1, identifierOrder })
  const folder = `query=feed.${identifier ?? 'tenant'}`
  for (const day of some([0, 3, 3, 40, 41, 200, 400, 400], 4)) {
    world.day = day
    const before = world.ids()[folder]?.length ?? 0
    const summary = await world.run()
    expect(summary.error).toBeNull()
    expect(summary.status).toBe('complete')
    expect(sorted(world.ids()[folder])).toEqual(sorted(world.expected(identifier)))
    expect(summary.rows).toBe(world.expected(identifier).length - before)
    expect(world.isComplete()).toBe(true)
    // Rows that are read again to find where a feed goes on are no fault of the service.
    expect(summary.repeated).toBe(0)
  }
})

const settings = fc.record({
  seed: fc.integer({ min: 1, max: 1000 }),
  isTenant: fc.boolean(),
  identifierOrder: fc.constantFrom('asc' as const, 'desc' as const),
  lateRate: fc.constantFrom(0, 0.05, 0.3),
  emptyPageRate: fc.constantFrom(0, 0.3),
  records: fc.constantFrom(5, 60, 300),
  pageSize: fc.constantFrom('7', '40', 'auto'),
  runs: fc.array(
    fc.record({
      days: fc.constantFrom(0, 1, 20, 90),
      killedAt: fc.option(fc.integer({ min: 1, max: 40 }), { freq: 2 }),
    }),
    { minLength: 10, maxLength: 10 },
  ),
})

test('ten runs, killed anywhere, give every row once', { timeout: 1_000_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(settings, async ({ isTenant, pageSize, runs, ...options }) => {
      const extract = `page_size: ${pageSize}${isTenant ? '' : ', identifiers: [1, 2, 3]'}`
      const world = await feedWorld(extract, options)
      for (const { days, killedAt } of runs) {
        world.day += days
        if (killedAt !== null) await world.runAndKill(killedAt)
        else expect((await world.run()).error).toBeNull()
      }
      expect((await world.run()).status).toBe('complete')
      for (const identifier of isTenant ? [null] : [1, 2, 3]) {
        const found = sorted(world.ids()[`query=feed.${identifier ?? 'tenant'}`])
        expect(found).toEqual(sorted(world.expected(identifier)))
      }
      await world.end()
    }),
    { numRuns: cases(100, 1) },
  )
})
