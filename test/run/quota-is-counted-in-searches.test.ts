import { describe, expect, it, test } from 'vitest'
import type { Clock } from '../../src/core/index.ts'
import { readPlan } from '../../src/data-set/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { sendPage, serveSearches } from '../extract/support.ts'
import { THOROUGH } from '../support/thorough.ts'
import { exportsTo, sandboxOf, worldAt } from './world.ts'

const DOMAINS = ['a.example', 'b.example', 'c.example', 'd.example']
const EXTRACT = `domains: [${DOMAINS.join(', ')}], concurrency: 4, max_requests: none, page_size: 500`

describe.each([
  ['one search for each 100 rows', 100, { perRequest: 5, spent: 80 }],
  ['one search a page', 0, { perRequest: 1, spent: 16 }],
] as const)('where the service takes %s', (_name, rowsPerSearch, cost) => {
  const full = THOROUGH || rowsPerSearch > 0
  const records = rowsPerSearch > 0 ? 2000 : 5000
  const service = rowsPerSearch > 0 ? '' : 'rows_per_search: page'
  const quota = { domains: DOMAINS, quota: 1000, rowsPerSearch }

  it('the searches spent are reported', async () => {
    const sandbox = await sandboxOf({ records: 2000, ...quota })
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
    const sandbox = await sandboxOf({ records, ...quota })
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
    const sandbox = await sandboxOf({ records, ...quota })
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

const PAGES = 8
const SHARE = 'domains: [acme.com], monthly_searches: 3, page_size: 100'

/** One query of eight pages, the time at which they are requested, and a run or a plan at that time. */
async function world(onRequest: (count: number, at: (time: string) => void) => void = () => {}) {
  let nowMs = 0
  const at = (time: string): void => {
    nowMs = Date.parse(time)
  }
  at('2024-01-30')
  const server = await serveSearches((_request, response, index) => {
    onRequest(index + 1, at)
    response.setHeader('x-flare-global-searches-remaining', 1000 - index)
    sendPage(response, index + 1 < PAGES ? `c${index}` : null, [])
  })
  const here = worldAt(server.url, SHARE)
  const clock: Clock = {
    now: () => nowMs,
    monotonicMs: () => performance.now(),
    sleep: async (_ms, signal) => signal.throwIfAborted(),
  }
  return {
    at,
    requestsSent: () => server.received.length,
    run: () => here.run(undefined, undefined, { clock }),
    plan: async () => {
      const pipeline = await here.read()
      return readPlan(pipeline, await runOptions(pipeline, { env: { SPILLWAY_TOKEN: 'token' }, clock }))
    },
  }
}

test('the runs of one month share its searches, and the next month continues', async () => {
  const { at, requestsSent, run, plan } = await world()
  const { status, error } = await run()
  expect({ status, requestsSent: requestsSent() }).toEqual({ status: 'budget', requestsSent: 3 })
  expect(error).toMatchObject({
    kind: 'quota',
    what: 'Of the 3 searches for 2024-01, 0 are left, and the next page may cost 1; 1 of 1 partition left',
  })
  expect(error?.next).toContain('Run again from 2024-02-01T00:00:00Z on')
  await expect(plan()).resolves.toMatchObject({ minRequests: 1, searchesThisMonth: 3 })

  at('2024-01-31T23:59:59.999Z')
  await expect(run()).resolves.toMatchObject({ status: 'budget', requests: 0 })
  at('2024-02-01')
  await expect(plan()).resolves.toMatchObject({ searchesThisMonth: 0 })
  await expect(run()).resolves.toMatchObject({ status: 'budget', requests: 3 })
  at('2024-12-31')
  await expect(run()).resolves.toMatchObject({ status: 'complete', requests: 2 })
  expect(requestsSent()).toBe(PAGES)
})

test('the searches of a run over several months are recorded for each of them', async () => {
  const { at, run, plan } = await world((count, at) => {
    if (count === 2) at('2024-02-10')
    if (count === 3) at('2024-03-10')
  })
  await expect(run()).resolves.toMatchObject({ status: 'budget', requests: 6 })
  const known: number[] = []
  for (const month of ['2024-01', '2024-02', '2024-03', '2024-04']) {
    at(month)
    known.push((await plan()).searchesThisMonth)
  }
  // The second search is in flight while January ends, and counts for one of the two.
  expect([
    [2, 1, 3, 0],
    [1, 2, 3, 0],
  ]).toContainEqual(known)
})
