import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cases } from '../support/thorough.ts'
import { feedWorld, sorted } from './feed-world.ts'

const settings = fc.record({
  seed: fc.integer({ min: 1, max: 1000 }),
  isTenant: fc.boolean(),
  identifierOrder: fc.constantFrom('asc' as const, 'desc' as const),
  lateRate: fc.constantFrom(0, 0.05, 0.3),
  emptyPageRate: fc.constantFrom(0, 0.3),
  records: fc.constantFrom(5, 60, 300),
  pageSize: fc.constantFrom('3', '40', 'auto'),
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

const folderOf = (identifier: number | null): string => `query=feed.${identifier ?? 'tenant'}`

test('ten runs, killed, stopped or without their state, give every row once', {
  timeout: 1_000_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(settings, async ({ isTenant, pageSize, runs, ...options }) => {
      const extract = `page_size: ${pageSize}${isTenant ? '' : ', identifiers: [1, 2, 3]'}`
      const world = await feedWorld(extract, options)
      // Nothing has come yet.
      world.day = -1
      expect(await world.run()).toMatchObject({ status: 'complete', rows: 0 })
      for (const { days, killedAt, budget, isStateLost } of runs) {
        world.day += days
        if (isStateLost && world.isComplete())
          rmSync(join(world.output, '_state'), { recursive: true, force: true })
        if (killedAt !== null) await world.runAndKill(killedAt)
        else if (budget !== null) await world.run(`${extract}, max_requests: ${budget}`)
        else expect((await world.run()).error).toBeNull()
      }
      expect((await world.run()).status).toBe('complete')
      const identifiers = isTenant ? [null] : [1, 2, 3]
      const rows = () => identifiers.flatMap((identifier) => sorted(world.ids()[folderOf(identifier)]))
      const wanted = () => identifiers.flatMap((identifier) => sorted(world.expected(identifier)))
      const before = wanted()
      expect(rows()).toEqual(before)
      world.day += 40
      const { status, partitions, ...counted } = await world.run()
      expect(status).toBe('complete')
      expect(rows()).toEqual(wanted())
      // Rows that are read again to find where a feed goes on are no fault of the service.
      expect(counted).toMatchObject({ error: null, rows: wanted().length - before.length, repeated: 0 })
      const { length } = JSON.parse(readFileSync(join(world.output, '_manifest.json'), 'utf8')).partitions
      expect(partitions).toEqual({ total: length, done: length, failed: 0, pending: 0 })
      expect(world.isComplete()).toBe(true)
      await world.end()
    }),
    { numRuns: cases(100, 3), endOnFailure: true },
  )
})
