import { join } from 'node:path'
import { expect, it } from 'vitest'
import { planShape } from '../support/json-shapes.ts'
import { readCsv } from '../support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const FILE = {
  extract: {
    domains: ['brambleworth.org', 'scatterholt.com', 'quillmere.net'],
    queries: [{ type: 'keyword', keyword: 'nobody' }],
    windows: { from: '2024-06-01', until: '2024-07-01', every: 'month' },
    page_size: 50,
  },
}

it('domains, range, folder and format of the command line replace those of the file', async () => {
  const here = await newWorkspace(FILE)
  const domains = ['scatterholt.com', 'quillmere.net']
  const range = { from: '2024-02-10', until: '2024-05-01T06:00:00Z' }
  const flags = [
    ...domains.flatMap((domain) => ['--domain', domain]),
    ...['--from', range.from, '--until', range.until, '--output', 'elsewhere/data', '--format', 'csv'],
    ...['--concurrency', '2', '--max-requests', '50'],
  ]
  const plan = await here.json('plan', ...flags)
  expect(planShape.parse(plan.value)).toMatchObject({
    partitions: { total: 8, done: 0, partial: 0, pending: 8 },
    min_requests: 2,
  })
  const { summary } = await exits(0, here.run(...flags))
  const output = join(here.folder, 'elsewhere/data')
  expect(summary.manifest).toBe(join(output, '_manifest.json'))
  expect(difference(await readCsv(output), expectedOfDomains(here.sandbox, domains, range))).toEqual(SAME)
})

const SLOTS = [
  { flags: ['--concurrency', '3'], most: 3 },
  { flags: ['--concurrency', '1'], most: 1 },
]

it.each(some(SLOTS, 1))('at most `concurrency` chains are in flight: $flags', async ({ flags, most }) => {
  const here = await newWorkspace(
    {
      extract: {
        domains: ['scatterholt.com'],
        windows: { from: '2024-01-01', until: '2024-07-01', every: 'month', per_chain: 1 },
        page_size: 10,
      },
    },
    { latencyMs: 15 },
  )
  expect((await here.run(...flags)).code).toBe(0)
  // A chain requests a page after it has the one before, so a window is in flight from its first request to its last.
  const windows = new Map<string, { first: number; last: number }>()
  for (const { body, number } of here.searches()) {
    const { gte } = (body as { filters: { imported_at: { gte: string } } }).filters.imported_at
    const seen = windows.get(gte)
    windows.set(gte, { first: seen?.first ?? number, last: number })
  }
  expect(windows.size).toBe(6)
  const atOnce = here
    .searches()
    .map(
      ({ number }) =>
        [...windows.values()].filter(({ first, last }) => first <= number && number <= last).length,
    )
  expect(Math.max(...atOnce)).toBe(most)
})
