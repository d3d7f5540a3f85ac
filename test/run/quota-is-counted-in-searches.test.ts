import { describe, expect, it, test } from 'vitest'
import { sendPage, serveSearches } from '../extract/support.ts'
import { THOROUGH } from '../support/thorough.ts'
import { exportsTo, itemAt, sandboxOf } from './world.ts'

const DOMAINS = ['a.example', 'b.example', 'c.example', 'd.example']
const EXTRACT = `domains: [${DOMAINS.join(', ')}], concurrency: 4, max_requests: none, page_size: 500`

describe.each([
  ['one search for each 100 rows', 100, { perRequest: 5, spent: 80 }],
  ['one search a page', 0, { perRequest: 1, spent: 16 }],
] as const)('where the service takes %s', (_name, rowsPerSearch, cost) => {
  const full = THOROUGH || rowsPerSearch > 0
  const records = rowsPerSearch > 0 ? 2000 : 5000
  const service = rowsPerSearch > 0 ? '' : 'rows_per_search: page'

  it('the searches spent are reported', async () => {
    const sandbox = await sandboxOf({ records: 2000, domains: DOMAINS, quota: 1000, rowsPerSearch })
    const here = exportsTo()
    const summary = await here.run(sandbox.baseUrl, sandbox.token, EXTRACT, service)
    expect(summary).toMatchObject({
      status: 'complete',
      requests: 16,
      searchesSpent: cost.spent,
      searchesRemaining: 1000 - cost.spent,
      service: { pageSize: 500 },
    })
    const status = await here.status(sandbox.baseUrl, EXTRACT)
    expect(status.service).toEqual(summary.service)
    expect(status.totals.searchesSpent).toBe(cost.spent)
  })

  it.runIf(full)('min_searches_remaining is kept, and all searches beyond it are used', async () => {
    const sandbox = await sandboxOf({ records, domains: DOMAINS, quota: 1000, rowsPerSearch })
    const here = exportsTo()
    const extract = `${EXTRACT}, min_searches_remaining: 965`
    const summary = await here.run(sandbox.baseUrl, sandbox.token, extract, service)
    expect(summary).toMatchObject({ status: 'budget', error: { kind: 'quota' } })
    expect(summary.searchesRemaining).toBeGreaterThanOrEqual(965)
    expect(summary.searchesRemaining).toBeLessThan(965 + cost.perRequest)
    expect(summary.searchesSpent).toBe(1000 - summary.searchesRemaining!)
    expect(summary.error?.what).toContain(`${summary.searchesRemaining} searches are left`)
    // The next run sends one request to learn what is left, and stops.
    const again = await here.run(sandbox.baseUrl, sandbox.token, extract, service)
    expect(again).toMatchObject({ status: 'budget', requests: 1 })
  })

  it.runIf(full)('a month has its share of searches', async () => {
    const sandbox = await sandboxOf({ records, domains: DOMAINS, quota: 1000, rowsPerSearch })
    const here = exportsTo()
    const extract = `${EXTRACT}, monthly_searches: 33`
    const summary = await here.run(sandbox.baseUrl, sandbox.token, extract, service)
    expect(summary.status).toBe('budget')
    expect(summary.searchesSpent).toBeLessThanOrEqual(33)
    expect(summary.searchesSpent).toBeGreaterThan(33 - cost.perRequest)
    const searches = () => sandbox.requests.filter(({ kind }) => kind === 'search').length
    const sent = searches()
    await expect(here.run(sandbox.baseUrl, sandbox.token, extract, service)).resolves.toMatchObject({
      requests: 0,
    })
    expect(searches()).toBe(sent)
  })

  it.runIf(full)('a month has its share, also of runs of one page each after one of few rows', async () => {
    const sandbox = await sandboxOf({ records: 5000, domains: ['a.example'], quota: 1000, rowsPerSearch })
    const here = exportsTo()
    const extract = (until: string, maxRequests: number) =>
      `domains: [a.example], page_size: 500, monthly_searches: 20, max_requests: ${maxRequests}, windows: { from: 2024-01-01, until: ${until}, every: 1d }`
    let left: number | null = 1000
    await here.run(sandbox.baseUrl, sandbox.token, extract('2024-01-02', 1), service)
    for (let run = 0; run < 5; run++) {
      const summary = await here.run(sandbox.baseUrl, sandbox.token, extract('2025-01-01', 1), service)
      left = summary.searchesRemaining ?? left
    }
    const { totals } = await here.status(sandbox.baseUrl, extract('2025-01-01', 1))
    // A page of another search, or a part of one, may have been free.
    expect(totals.searchesSpent).toBeGreaterThanOrEqual(1000 - left)
    expect(totals.searchesSpent).toBeLessThanOrEqual(20)
  })

  it.runIf(full)('the plan estimates the cost of the rest', async () => {
    const sandbox = await sandboxOf({ records: 1200, domains: DOMAINS, quota: 1000, rowsPerSearch })
    const here = exportsTo()
    const windows = (until: string) =>
      `${EXTRACT}, windows: { from: 2024-01-01, until: ${until}, every: month }`
    await expect(here.plan(sandbox.baseUrl, windows('2024-07-01'), service)).resolves.toMatchObject({
      minRequests: 4,
      expectedSearches: null,
      searchesAPage: cost.perRequest,
    })
    await here.run(sandbox.baseUrl, sandbox.token, windows('2024-07-01'), service)
    const plan = await here.plan(sandbox.baseUrl, windows('2025-01-01'), service)
    if (rowsPerSearch === 0) expect(plan.expectedSearches).toBe(plan.expectedRequests)
    else expect(plan.expectedSearches).toBeGreaterThan(2 * plan.expectedRequests!)
  })
})

test('without the header, nothing is counted or stopped', async () => {
  const server = await serveSearches((request, response) => {
    const { from = 'c0' } = request.json as { from?: string }
    const page = Number(from.slice(1))
    const items = [itemAt(900_000_000 + page, `2024-01-01T00:00:0${page}Z`)]
    sendPage(response, page < 5 ? `c${page + 1}` : null, items)
  })
  const here = exportsTo()
  const extract = 'domains: [acme.com], min_searches_remaining: 100000, monthly_searches: 100'
  const summary = await here.run(server.url, 'token', extract)
  expect(summary).toMatchObject({
    status: 'complete',
    rows: 6,
    requests: 6,
    searchesSpent: null,
    searchesRemaining: null,
  })
})

test('a page that may cost more than is left of the month is not requested', async () => {
  const sandbox = await sandboxOf({ records: 50, domains: DOMAINS, quota: 1000 })
  const here = exportsTo()
  const summary = await here.run(sandbox.baseUrl, sandbox.token, `domains: [a.example], monthly_searches: 40`)
  expect(summary).toMatchObject({ status: 'budget', requests: 0 })
  expect(summary.error?.what).toContain('may cost 100 searches, more than the 40 of extract.monthly_searches')
  expect(summary.error?.next).toContain('Lower extract.page_size')
  // No later month has more.
  expect(summary.error?.untilMs).toBeNull()
  const fitting = `domains: [a.example], monthly_searches: 40, page_size: 4000`
  expect(await here.run(sandbox.baseUrl, sandbox.token, fitting)).toMatchObject({
    status: 'complete',
    rows: 50,
  })
})

test('the second search has no quota: nothing is reserved there', async () => {
  const sandbox = await sandboxOf({ records: 50, domains: DOMAINS, quota: 0 })
  const here = exportsTo()
  const extract = `domains: [a.example], monthly_searches: 1`
  const second = "search_path: '/astp/v2/credentials/_search'"
  const summary = await here.run(sandbox.origin, sandbox.token, extract, second)
  expect(summary).toMatchObject({ status: 'complete', rows: 50, searchesSpent: null })
})
