import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { repeatedSearches } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-04-01' }
const parts = (settings: object = {}) => ({
  extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 5, ...settings },
})

/** The number of pages. The service's filter is inclusive, so responses hold rows at the very end of the range too. */
function leastSearches({ sandbox }: Workspace): number {
  const range = { from: RANGE.from, until: `${RANGE.until}T00:00:00.000001Z` }
  const pages = DOMAINS.map((fqdn) => {
    const items = [...sandbox.expected({ query: { type: 'domain', fqdn }, ...range })].length
    return Math.max(1, Math.ceil(items / 5))
  })
  return pages.reduce((sum, each) => sum + each, 0)
}

/** Runs again and again, as cron would. */
async function runUntilDone(here: Workspace, ...flags: string[]): Promise<number> {
  for (let runs = 1; ; runs++) {
    const { code, stderr, summary } = await here.run(...flags)
    expect([0, 4], stderr).toContain(code)
    expect(summary.status).toBe(code === 0 ? 'complete' : 'budget')
    expect(existsSync(join(here.output, '_SUCCESS'))).toBe(code === 0)
    if (code === 0) return runs
    expect(summary.requests).toBeGreaterThan(0)
    expect(summary.partitions.pending).toBeGreaterThan(0)
  }
}

const WAYS = [
  { concurrency: 4, partition_by: ['query', 'window'] },
  { concurrency: 1, partition_by: 'none' },
]

describe.each(some(WAYS, 1))(
  'with concurrency $concurrency, by $partition_by',
  ({ concurrency, partition_by }) => {
    it('runs of five requests each complete the export without one request too many', async () => {
      const here = await newWorkspace({ ...parts({ max_requests: 5, concurrency }), load: { partition_by } })
      const least = leastSearches(here)
      const runs = await runUntilDone(here)
      const sent = here.searches().length
      expect(repeatedSearches(here.searches())).toBe(0)
      // With more slots than queries, the windows of a query may be divided among them.
      expect(sent).toBeGreaterThanOrEqual(least)
      if (concurrency === 1) expect(sent).toBe(least)
      expect(runs).toBe(Math.ceil(sent / 5))
      await here.expectRows(DOMAINS, RANGE)
      const { runs: recorded } = await here.manifest()
      expect(recorded.reduce((sum, { requests }) => sum + requests, 0)).toBe(sent)
    })
  },
)

it('a quota that is used up stops the run, resumable', async () => {
  const here = await newWorkspace(parts({ min_searches_remaining: 'none', concurrency: 1 }), {
    quota: 3,
    rowsPerSearch: 0,
  })
  const { summary } = await exits(4, here.run())
  expect(summary.status).toBe('budget')
  expect(here.searches()).toHaveLength(4)
  // Three pages go beyond January, so the shard of January is published.
  const january = { from: RANGE.from, until: '2024-02-01' }
  await here.expectRows(['scatterholt.com'], january)
})
