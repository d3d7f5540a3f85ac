import { describe, expect, it } from 'vitest'
import { runLibrary } from '../support/library-run.ts'
import type { SandboxOptions } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const CONCURRENCY = 4

async function exporter(options: SandboxOptions) {
  const here = await newWorkspace({}, { nastyRate: 0, nullRate: 0, ...options })
  return {
    here,
    /** Runs to the end. @returns the number of searches */
    async run(extract: PipelineParts['extract']): Promise<number> {
      const before = here.sandbox.requests.length
      const { status, requests } = await runLibrary(here, {
        service: { requests_per_second: 10_000 },
        extract: { concurrency: CONCURRENCY, max_requests: 'none', ...extract },
        load: { format: 'csv' },
      })
      expect(status).toBe('complete')
      expect(here.sandbox.requests.length - before).toBe(requests)
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

function domainNames(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `d${i}.example`)
}

/** Half of the cases use one order, half the other; where everything is tried, all use both. */
const ORDERS = ['asc', 'desc'] as const
const ordersOf = (index: number) => (THOROUGH ? ORDERS : [ORDERS[index % 2]!])

const CASES = [
  {
    what: 'many domains with a few rows a month',
    domains: THOROUGH ? 40 : 8,
    records: 50,
    every: 'month',
    months: THOROUGH ? 24 : 6,
  },
  {
    what: 'a domain alone, with many pages',
    domains: 1,
    records: 900,
    every: 'week',
    months: 12,
    pageSize: 20,
  },
  { what: 'domains without rows', domains: 12, records: 0, every: 'month', months: THOROUGH ? 24 : 6 },
].map((given, index) => ({ ...given, orders: ordersOf(index) }))

describe.each(some(CASES, 1))(
  '$what',
  ({ domains: count, records, every, months, orders, pageSize = 1000 }) => {
    it.each(orders)('cost one search per page and at most one more per slot, %s', async (order) => {
      const domains = domainNames(count)
      const range = {
        from: '2023-01-01',
        until: new Date(Date.UTC(2023, months, 1)).toISOString().slice(0, 10),
      }
      const { here, run } = await exporter({
        domains,
        records,
        from: range.from,
        until: range.until,
      })
      const sent = await run({ domains, windows: { ...range, every }, page_size: pageSize, order })
      const least = leastSearches(here, domains, range, pageSize)
      // A chain that begins beside the first one of its query is a division, and costs one more.
      const begun = here.sandbox.requests.filter(
        ({ body }) => (body as { from?: unknown }).from == null,
      ).length
      expect(sent).toBeLessThanOrEqual(Math.floor(1.02 * least) + Math.max(CONCURRENCY, begun - count))
      expect(sent).toBeGreaterThanOrEqual(least)
      await here.expectRows(domains, range)
    })
  },
)

it('a later run sends one search per query for all new windows', async () => {
  const domains = domainNames(3)
  const { here, run } = await exporter({
    domains,
    records: 120,
    from: '2023-01-01',
    until: '2024-01-01',
  })
  const from = '2023-01-01'
  await run({ domains, windows: { from, until: '2023-08-01', every: 'month' } })
  expect(await run({ domains, windows: { from, until: '2023-12-01', every: 'month' } })).toBe(3)
  expect(await run({ domains, windows: { from, until: '2023-12-01', every: 'month' } })).toBe(0)
  await here.expectRows(domains, { from, until: '2023-12-01' })
})
