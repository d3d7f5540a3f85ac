import { expect, it } from 'vitest'
import { runLibrary } from '../support/library-run.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const CONCURRENCY = 4

const PAGE = 100

/** Pages in a range, however it is cut into windows. A query without rows costs a search too. */
function leastSearches(
  { sandbox }: Workspace,
  domains: readonly string[],
  from: string,
  end: string,
): number {
  // The service's filter is inclusive at both ends.
  const until = new Date(Date.parse(end) + 1).toISOString()
  return domains.reduce((sum, fqdn) => {
    const items = [...sandbox.expected({ query: { type: 'domain', fqdn }, from, until })].length
    return sum + Math.max(1, Math.ceil(items / PAGE))
  }, 0)
}

const CASES = [
  { what: 'many domains with a few rows a month', domains: 8, records: 50, every: 'month', months: 6 },
  { what: 'a domain alone, with many pages', domains: 1, records: 900, every: 'week', months: 12 },
  { what: 'domains without rows', domains: 12, records: 0, every: 'month', months: 6 },
].flatMap((given) => (['asc', 'desc'] as const).map((order) => ({ ...given, order })))

it.each(some(CASES, 1))(
  '$what, $order, cost one search per page and at most one more per slot; new windows one per query',
  async ({ domains: count, records, every, months, order }) => {
    const domains = Array.from({ length: count }, (_, i) => `d${i}.example`)
    const day = (month: number) => new Date(Date.UTC(2023, month, 1)).toISOString().slice(0, 10)
    const range = { from: day(0), until: day(months) }
    const here = await newWorkspace({}, { nastyRate: 0, nullRate: 0, domains, records, ...range })
    const requestsUntil = async (until: string): Promise<number> => {
      const before = here.searches().length
      const windows = { ...range, until, every }
      const { status, requests } = await runLibrary(here, {
        service: { requests_per_second: 10_000 },
        extract: { domains, windows, page_size: PAGE, order, concurrency: CONCURRENCY, max_requests: 'none' },
        load: { format: 'csv' },
      })
      expect(status).toBe('complete')
      expect(here.searches().length - before).toBe(requests)
      return requests
    }
    const sent = await requestsUntil(range.until)
    const least = leastSearches(here, domains, range.from, range.until)
    // A chain that begins beside the first one of its query is a division, and costs one more.
    const begun = here.searches().filter(({ body }) => (body as { from?: unknown }).from == null).length
    expect(sent).toBeLessThanOrEqual(Math.floor(1.02 * least) + Math.max(CONCURRENCY, begun - count))
    expect(sent).toBeGreaterThanOrEqual(least)
    await here.expectRows(domains, range)
    expect(await requestsUntil(day(months + 4))).toBe(count)
  },
)
