import { expect, it } from 'vitest'
import { runLibrary } from '../support/library-run.ts'
import type { SandboxOptions } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const CONCURRENCY = 4

async function exporter(options: SandboxOptions) {
  const here = await newWorkspace({}, { nastyRate: 0, nullRate: 0, ...options })
  return {
    here,
    async run(extract: PipelineParts['extract']): Promise<number> {
      const before = here.searches().length
      const { status, requests } = await runLibrary(here, {
        service: { requests_per_second: 10_000 },
        extract: { concurrency: CONCURRENCY, max_requests: 'none', ...extract },
        load: { format: 'csv' },
      })
      expect(status).toBe('complete')
      expect(here.searches().length - before).toBe(requests)
      return requests
    },
  }
}

/** Pages in a range, however it is cut into windows. A query without rows costs a search too. */
function leastSearches(
  { sandbox }: Workspace,
  domains: readonly string[],
  range: Range,
  pageSize: number,
): number {
  // The service's filter is inclusive at both ends.
  const until = new Date(Date.parse(range.until) + 1).toISOString()
  return domains.reduce((sum, fqdn) => {
    const items = [...sandbox.expected({ query: { type: 'domain', fqdn }, from: range.from, until })].length
    return sum + Math.max(1, Math.ceil(items / pageSize))
  }, 0)
}

type Range = { readonly from: string; readonly until: string }

const domainNames = (count: number): string[] => Array.from({ length: count }, (_, i) => `d${i}.example`)

const CASES = [
  { what: 'many domains with a few rows a month', domains: 8, records: 50, every: 'month', months: 6 },
  { what: 'a domain alone, with many pages', domains: 1, records: 900, every: 'week', months: 12 },
  { what: 'domains without rows', domains: 12, records: 0, every: 'month', months: 6 },
].flatMap((given) => (['asc', 'desc'] as const).map((order) => ({ ...given, order })))

it.each(some(CASES, 1))(
  '$what, $order, cost one search per page and at most one more per slot; new windows one per query',
  async ({ domains: count, records, every, months, order }) => {
    const domains = domainNames(count)
    const day = (month: number) => new Date(Date.UTC(2023, month, 1)).toISOString().slice(0, 10)
    const range = { from: day(0), until: day(months) }
    const { here, run } = await exporter({ domains, records, from: range.from, until: range.until })
    const extract = { domains, page_size: 100, order }
    const sent = await run({ ...extract, windows: { ...range, every } })
    const least = leastSearches(here, domains, range, 100)
    // A chain that begins beside the first one of its query is a division, and costs one more.
    const begun = here.searches().filter(({ body }) => (body as { from?: unknown }).from == null).length
    expect(sent).toBeLessThanOrEqual(Math.floor(1.02 * least) + Math.max(CONCURRENCY, begun - count))
    expect(sent).toBeGreaterThanOrEqual(least)
    await here.expectRows(domains, range)
    expect(await run({ ...extract, windows: { ...range, until: day(months + 4), every } })).toBe(count)
  },
)

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
