import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cases } from '../support/thorough.ts'
import { type FeedWorld, feedWorld, sorted } from './feed-world.ts'

const settings = fc.record({
  seed: fc.integer({ min: 1, max: 1000 }),
  isTenant: fc.boolean(),
  identifierOrder: fc.constantFrom('asc' as const, 'desc' as const),
  lateRate: fc.constantFrom(0, 0.05, 0.3),
  emptyPageRate: fc.constantFrom(0, 0.3),
  records: fc.constantFrom(5, 60, 300),
  pageSize: fc.constantFrom('2', '7', '40', 'auto'),
  /** On the day before the first nothing has come yet. */
  first: fc.constantFrom(-1, 0),
  runs: fc.array(
    fc.record({
      days: fc.constantFrom(0, 1, 20, 90),
      killedAt: fc.option(fc.integer({ min: 1, max: 40 }), { freq: 2 }),
      budget: fc.option(fc.integer({ min: 1, max: 4 }), { freq: 2 }),
      isStateLost: fc.boolean(),
    }),
    { minLength: 10, maxLength: 10 },
  ),
})

/** A run that nothing disturbs adds all that is new. Where the data set was complete, its figures are those of its rows. */
async function expectAll(world: FeedWorld, identifiers: readonly (number | null)[]): Promise<void> {
  const wasComplete = world.isComplete()
  const rowsIn = () => Object.values(world.ids()).flat().length
  const before = rowsIn()
  const summary = await world.run()
  expect(summary).toMatchObject({ status: 'complete', error: null })
  for (const identifier of identifiers) {
    const found = sorted(world.ids()[`query=feed.${identifier ?? 'tenant'}`])
    expect(found).toEqual(sorted(world.expected(identifier)))
  }
  if (wasComplete) expect(summary.rows).toBe(rowsIn() - before)
  expect(world.isComplete()).toBe(true)
  const { length } = JSON.parse(readFileSync(join(world.output, '_manifest.json'), 'utf8')).partitions
  expect(summary.partitions).toEqual({ total: length, done: length, failed: 0, pending: 0 })
  // Rows that are read again to find where a feed goes on are no fault of the service.
  expect(summary.repeated).toBe(0)
}

test('ten runs, killed, stopped or without their state, give every row once', {
  timeout: 1_000_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(settings, async ({ isTenant, pageSize, first, runs, ...options }) => {
      const extract = `page_size: ${pageSize}${isTenant ? '' : ', identifiers: [1, 2, 3]'}`
      const identifiers = isTenant ? [null] : [1, 2, 3]
      const world = await feedWorld(extract, options)
      world.day = first
      await expectAll(world, identifiers)
      for (const { days, killedAt, budget, isStateLost } of runs) {
        world.day += days
        if (isStateLost && world.isComplete())
          rmSync(join(world.output, '_state'), { recursive: true, force: true })
        if (killedAt !== null) await world.runAndKill(killedAt)
        else if (budget !== null) await world.run({ extract: `${extract}, max_requests: ${budget}` })
        else await expectAll(world, identifiers)
      }
      await expectAll(world, identifiers)
      await world.end()
    }),
    { numRuns: cases(100, 3), endOnFailure: true },
  )
})
