import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cases } from '../support/thorough.ts'
import { type Fields, idsByFolder, itemAt, serviceOf, worldAt } from './world.ts'

const DAY_MS = 86_400_000
const FROM = Date.UTC(2024, 0, 1)
const WINDOW_MS = 3 * DAY_MS
const UNTIL = FROM + 8 * WINDOW_MS

const drawn = fc.record({
  /** In the order in which the service sends them, unless it keeps the order that is asked for. */
  times: fc.array(fc.integer({ min: FROM, max: UNTIL - 1 }), { maxLength: 60 }),
  disorder: fc.constantFrom('none', 'late', 'all'),
  order: fc.constantFrom('asc', 'desc'),
  pageSize: fc.integer({ min: 1, max: 20 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  perChain: fc.constantFrom('all', 1, 3),
  partitionBy: fc.constantFrom('[query, window]', '[window]', 'none'),
  budgets: fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 3 }),
})

function itemsOf(times: readonly number[], order: string, disorder: string): readonly Fields[] {
  const items = times.map((at, i) => ({ at, item: itemAt(i + 1, new Date(at).toISOString()) }))
  const inOrder = items.toSorted((a, b) => (order === 'asc' ? a.at - b.at : b.at - a.at))
  // One row of the beginning comes at the very end.
  const late = [...inOrder.slice(1), ...inOrder.slice(0, 1)]
  return { none: inOrder, late, all: items }[disorder]!.map(({ item }) => item)
}

it('each row is in its window once, in whatever order the service sends them, also over several runs', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async (given) => {
      const { times, order, pageSize, partitionBy } = given
      const service = await serviceOf(itemsOf(times, order, given.disorder), pageSize)
      const windows = `{ from: 2024-01-01, until: ${new Date(UNTIL).toISOString()}, every: 3d, per_chain: ${given.perChain} }`
      const extract = `domains: [acme.example], windows: ${windows}, order: ${order}, page_size: ${pageSize}, concurrency: ${given.concurrency}`
      const load = `format: csv, path: out, partition_by: ${partitionBy}, shard_rows: 7`
      const here = await worldAt(service.url, extract, { load })
      const warnings: string[] = []
      const onLog = (level: string, text: string) => void (level === 'warn' && warnings.push(text))
      for (const budget of [...given.budgets, 'none']) {
        const summary = await here.run('{}', `${extract}, max_requests: ${budget}`, { onLog })
        expect(summary.partitions.failed).toBe(0)
      }
      const found = Object.entries(idsByFolder(join(here.folder, 'out')))
      expect(found.flatMap(([, ids]) => ids).sort((a, b) => a - b)).toEqual(times.map((_, i) => i + 1))
      for (const [folder, ids] of partitionBy === 'none' ? [] : found) {
        const from = Date.parse(/import_window=(\d{4}-\d\d-\d\d)/.exec(folder)![1]!)
        for (const id of ids) expect(Math.floor((times[id - 1]! - from) / WINDOW_MS), folder).toBe(0)
      }
      if (given.disorder === 'none') expect(warnings).toEqual([])
    }),
    { numRuns: cases(15, 3) },
  )
})
