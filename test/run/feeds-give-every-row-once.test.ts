import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cases, some } from '../support/thorough.ts'
import { feedWorld, sorted } from './feed-world.ts'

const feeds = [
  ['the tenant', '', null, {}],
  ['an identifier, newest first', 'identifiers: [2]', 2, {}],
  ['an identifier, oldest first', 'identifiers: [2]', 2, { identifierOrder: 'asc' }],
  ['an identifier of few rows', 'identifiers: [2], page_size: 2', 2, { records: 12 }],
] as const
test.for(some(feeds, 3))('every run adds what is new of %s', async ([, extract, identifier, options]) => {
  const world = await feedWorld(extract, { lateRate: 0.1, identifierOrder: 'desc', ...options })
  const folder = `query=feed.${identifier ?? 'tenant'}`
  // On the first day nothing has come yet.
  for (const day of some([-1, 0, 3, 3, 40, 41, 200, 400, 400], 5)) {
    world.day = day
    const before = world.ids()[folder]?.length ?? 0
    const summary = await world.run()
    expect(summary.error).toBeNull()
    expect(summary.status).toBe('complete')
    expect(sorted(world.ids()[folder])).toEqual(sorted(world.expected(identifier)))
    expect(summary.rows).toBe(world.expected(identifier).length - before)
    expect(world.isComplete()).toBe(true)
    const { length } = JSON.parse(readFileSync(join(world.output, '_manifest.json'), 'utf8')).partitions
    expect(summary.partitions).toEqual({ total: length, done: length, failed: 0, pending: 0 })
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
      budget: fc.option(fc.integer({ min: 1, max: 4 }), { freq: 2 }),
      isStateLost: fc.boolean(),
    }),
    { minLength: 10, maxLength: 10 },
  ),
})

test('ten runs, killed, stopped or without their state, give every row once', {
  timeout: 1_000_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(settings, async ({ isTenant, pageSize, runs, ...options }) => {
      const extract = `page_size: ${pageSize}${isTenant ? '' : ', identifiers: [1, 2, 3]'}`
      const world = await feedWorld(extract, options)
      for (const { days, killedAt, budget, isStateLost } of runs) {
        world.day += days
        if (isStateLost && world.isComplete())
          rmSync(join(world.output, '_state'), { recursive: true, force: true })
        if (killedAt !== null) await world.runAndKill(killedAt)
        else if (budget !== null) await world.run({ extract: `${extract}, max_requests: ${budget}` })
        else expect((await world.run()).error).toBeNull()
      }
      expect((await world.run()).status).toBe('complete')
      for (const identifier of isTenant ? [null] : [1, 2, 3]) {
        const found = sorted(world.ids()[`query=feed.${identifier ?? 'tenant'}`])
        expect(found).toEqual(sorted(world.expected(identifier)))
      }
      await world.end()
    }),
    { numRuns: cases(100, 3), endOnFailure: true },
  )
})
