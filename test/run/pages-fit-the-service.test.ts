import { describe, expect, it } from 'vitest'
import type { LoggedRequest } from '../../src/sandbox/index.ts'
import { sendPage, serve } from '../extract/support.ts'
import { THOROUGH } from '../support/thorough.ts'
import { exportsTo, sandboxOf } from './quick-export.ts'
import { itemAt } from './world.ts'

const ROWS = THOROUGH ? 8000 : 2000
const SECOND = ", search_path: '/astp/v2/credentials/_search'"
const DOMAIN = 'quillmere.net'
const EXTRACT = `domains: [${DOMAIN}], windows: { from: 2024-01-01, until: 2025-01-01, every: month }, concurrency: 1, max_requests: none`

const sizeOf = ({ body }: LoggedRequest): number => (body as { size: number }).size
const searchesOf = (requests: readonly LoggedRequest[]) => requests.filter(({ kind }) => kind === 'search')
const failuresOf = (requests: readonly LoggedRequest[]) => requests.filter(({ status }) => status !== 200)

/** A service that serves pages of up to 300 rows in time. */
const slow = (records: number, domains: readonly string[] = [DOMAIN]) =>
  sandboxOf({ records, domains, msPerRow: 0.01, gatewayTimeoutMs: 3, cursorKey: 'one' })

describe('a service that serves no more than 300 rows in time', () => {
  it('gets smaller and smaller pages, gives every row once, and repeats no page', async () => {
    const sandbox = await slow(ROWS)
    const here = await exportsTo()
    const url = sandbox.origin
    const summary = await here.run(url, sandbox.token, EXTRACT, SECOND)
    expect(summary).toMatchObject({ status: 'complete', rows: ROWS, retries: 0, repeated: 0 })
    expect(summary.searchesSpent).toBeNull()
    expect(summary.service.pageSize).toBe(156)

    const sent = searchesOf(sandbox.requests)
    const failed = failuresOf(sent)
    const good = sent.length - failed.length
    expect(summary.requests).toBe(sent.length)
    expect(sent.slice(0, 7).map(sizeOf)).toEqual([10_000, 5000, 2500, 1250, 625, 312, 156])
    expect(failed.length).toBeLessThanOrEqual(Math.ceil(Math.log2(10_000 / 300)) + Math.floor(good / 5))
    // Rows of a page are not requested again, except for those of its last instant.
    expect(sent.reduce((sum, { items }) => sum + items, 0) - ROWS).toBeLessThanOrEqual(failed.length * 3)
    expect(good).toBeLessThanOrEqual(Math.ceil(ROWS / 156) + failed.length)

    // The bytes depend on the rows alone.
    const other = await exportsTo()
    const plain = await sandboxOf({ records: ROWS, domains: [DOMAIN], cursorKey: 'one' })
    await other.run(plain.origin, plain.token, `${EXTRACT}, page_size: 1000`, SECOND)
    expect(await here.shards()).toEqual(await other.shards())
    expect(new Set(await here.ids()).size).toBe(ROWS)
  })

  it('takes at most six page sizes from each of four chains, and none more from new queries', async () => {
    const domains = ['a.example', 'b.example', 'c.example', 'd.example', 'e.example', 'f.example']
    const sandbox = await slow(700, domains)
    const here = await exportsTo()
    const extract = `domains: [${domains.join(', ')}], concurrency: 4, max_requests: none`
    const summary = await here.run(sandbox.origin, sandbox.token, extract, SECOND)
    expect(summary).toMatchObject({ status: 'complete', rows: 6 * 700 })
    const sent = searchesOf(sandbox.requests)
    const failed = failuresOf(sent)
    expect(failed.length).toBeLessThanOrEqual(4 * 6 + Math.floor((sent.length - failed.length) / 5))
    const firstOf = (fqdn: string) =>
      sent.find(({ body }) => (body as { query: { fqdn: string } }).query.fqdn === fqdn)!
    expect(sizeOf(firstOf('f.example'))).toBeLessThanOrEqual(312)
  })

  it.each([
    ['four queries', `domains: [a.example, b.example, c.example, d.example]`],
    ['four chains of one query', EXTRACT.replace(/, concurrency.*/, '').replace(DOMAIN, 'a.example')],
  ])(
    'fails with each page size once, whichever of %s requests it, if it tells the searches left',
    async (_name, queries) => {
      const sandbox = await slow(4000, ['a.example', 'b.example', 'c.example', 'd.example'])
      const here = await exportsTo()
      const extract = `${queries}, concurrency: 4, max_requests: none, monthly_searches: 500`
      const summary = await here.run(sandbox.baseUrl, sandbox.token, extract)
      expect(summary).toMatchObject({ status: 'complete', repeated: 0 })
      const sent = searchesOf(sandbox.requests)
      const first = sent.findIndex(({ status }) => status === 200)
      expect(sent.slice(0, first + 1).map(sizeOf)).toEqual([10_000, 5000, 2500, 1250, 625, 312, 156])
      // Later failures are attempts to grow.
      for (const request of failuresOf(sent.slice(first))) expect(sizeOf(request)).toBe(312)
    },
  )

  it('gets the last page size again in the next run, and status shows it', async () => {
    const sandbox = await slow(2000)
    const here = await exportsTo()
    const first = await here.run(
      sandbox.origin,
      sandbox.token,
      `${EXTRACT}, max_requests: 8`.replace('max_requests: none, ', ''),
      SECOND,
    )
    expect(first).toMatchObject({ status: 'budget', requests: 8 })
    const before = sandbox.requests.length
    const { service } = await here.status(sandbox.origin, EXTRACT)
    expect(service).toEqual({ pageSize: 156, searchesPerRequest: null, searchesPer1000Rows: null })
    expect(await here.run(sandbox.origin, sandbox.token, EXTRACT, SECOND)).toMatchObject({
      status: 'complete',
    })
    expect(sizeOf(searchesOf(sandbox.requests)[before]!)).toBe(156)
    const changes = here.log.filter(({ fields }) => (fields as { event?: string }).event === 'page_size')
    expect(changes.slice(0, 6).map(({ fields }) => (fields as { page_size: number }).page_size)).toEqual([
      5000, 2500, 1250, 625, 312, 156,
    ])
    expect(new Set(await here.ids()).size).toBe(2000)
  })
})

it('pages may have another size in each run: the rows and the bytes are the same', async () => {
  const sandbox = await sandboxOf({ records: 300, domains: [DOMAIN] })
  const here = await exportsTo()
  const sizes = ['7', '50', '3', 'auto']
  for (const [i, size] of sizes.entries()) {
    const budget = i === sizes.length - 1 ? 'none' : '3'
    const extract = EXTRACT.replace('max_requests: none', `max_requests: ${budget}, page_size: ${size}`)
    await here.run(sandbox.baseUrl, sandbox.token, extract)
  }
  expect(searchesOf(sandbox.requests).map(sizeOf)).toEqual([7, 7, 7, 50, 50, 50, 3, 3, 3, 10_000])
  const received = searchesOf(sandbox.requests).reduce((sum, { items }) => sum + items, 0)
  // The row at which each run resumes.
  expect(received).toBeLessThanOrEqual(300 + 3)
  const other = await exportsTo()
  await other.run(sandbox.baseUrl, sandbox.token, EXTRACT)
  expect(await here.shards()).toEqual(await other.shards())
})

it('pages grow again if responses are quick', async () => {
  let most = 20
  const sandbox = await sandboxOf({
    records: 2000,
    domains: [DOMAIN],
    faults: [{ kind: 'html', when: (request) => sizeOf(request) > most }],
  })
  const here = await exportsTo()
  const running = here.run(sandbox.baseUrl, sandbox.token, EXTRACT)
  const watch = setInterval(() => {
    if (searchesOf(sandbox.requests).filter(({ status }) => status === 200).length > 6) most = 10_000
  }, 1)
  const summary = await running.finally(() => clearInterval(watch))
  expect(summary).toMatchObject({ status: 'complete', rows: 2000, retries: 0 })
  const good = searchesOf(sandbox.requests).filter(({ status }) => status === 200)
  const sizes = good.map(sizeOf)
  // Never more than twice as many, and not before five pages; once that is served, with each page.
  for (const [i, size] of sizes.entries()) if (i > 0) expect(size).toBeLessThanOrEqual(sizes[i - 1]! * 2)
  const first = sizes.findIndex((size, i) => i > 0 && size > sizes[i - 1]!)
  expect(first).toBeGreaterThanOrEqual(5)
  expect(sizes.slice(first, -1)).toEqual(sizes.slice(first, -1).map((_, i) => sizes[first]! * 2 ** i))
  expect(Math.max(...sizes)).toBeGreaterThan(100)
  expect(new Set(await here.ids()).size).toBe(2000)
})

it('without order, a chain continues with the size for which its cursor was given', async () => {
  const times = ['2024-01-05', '2024-01-03', '2024-01-09', '2024-01-02', '2024-01-07', '2024-01-08']
  const items = times.map((day, i) => itemAt(900_000_001 + i, `${day}T00:00:00Z`))
  let fails = 1
  const server = await serve((request, response) => {
    const { from, size } = request.json as { from?: string; size: number }
    const start = Number(from?.slice(1) ?? 0)
    if (start === 4 && fails-- > 0) return void response.writeHead(504).end('upstream request timeout')
    // Pages may be as short as the service likes.
    const end = start + Math.min(size, 2)
    sendPage(response, end < items.length ? `c${end}` : null, items.slice(start, end))
  })
  const here = await exportsTo()
  const summary = await here.run(
    server.url,
    'token',
    'domains: [acme.com], windows: { from: 2024-01-01, until: 2024-02-01 }',
  )
  expect(summary).toMatchObject({ status: 'complete', rows: 6 })
  expect(server.received.map(({ json }) => (json as { size: number }).size)).toEqual([
    10_000, 10_000, 10_000, 10_000,
  ])
  expect(here.log.map(({ message }) => message).join()).toContain('the size of pages cannot change here')
})

it('a response with Retry-After does not reduce the page size', async () => {
  const sandbox = await sandboxOf({
    records: 20,
    domains: [DOMAIN],
    faults: [
      { kind: 'status', status: 504, retryAfter: '1', requests: [1] },
      { kind: 'status', status: 503, requests: [2] },
      { kind: 'status', status: 500, requests: [3] },
      { kind: 'reset', requests: [4] },
    ],
  })
  const here = await exportsTo()
  const summary = await here.run(sandbox.baseUrl, sandbox.token, EXTRACT)
  expect(summary).toMatchObject({ status: 'complete', rows: 20, retries: 4 })
  expect(new Set(searchesOf(sandbox.requests).map(sizeOf))).toEqual(new Set([10_000]))
})

it('one refusal within a second does not reduce the page size', async () => {
  const sandbox = await sandboxOf({
    records: 50,
    domains: [DOMAIN],
    faults: [{ kind: 'html', requests: [1, 4] }],
  })
  const here = await exportsTo()
  const extract = EXTRACT.replace('max_requests: none', 'page_size: 20')
  const summary = await here.run(sandbox.baseUrl, sandbox.token, extract, ', retries: 0')
  expect(summary).toMatchObject({ status: 'complete', rows: 50 })
  expect(searchesOf(sandbox.requests).map(sizeOf)).toEqual([20, 20, 20, 20, 20])
})

it('pages do not grow where more than a page has the time of the last row', async () => {
  const items = Array.from({ length: 1000 }, (_, i) =>
    itemAt(900_000_001 + i, i < 600 ? '2024-01-05T00:00:00Z' : `2024-01-06T00:00:00.${i - 500}Z`),
  )
  let sent = 0
  const server = await serve(({ json }, response, index) => {
    const { from, size, filters } = json as Search
    if (index === 0) return void response.writeHead(504).end('upstream request timeout')
    const wanted = items.filter(({ imported_at }) => isAfter(String(imported_at), filters.imported_at.gte))
    const start = Number(from?.slice(1) ?? 0)
    const end = start + size
    const page = wanted.slice(start, end)
    sent += page.length
    sendPage(response, end < wanted.length ? `c${end}` : null, page)
  })
  const here = await exportsTo()
  const windows = 'windows: { from: 2024-01-01, until: 2024-02-01 }, max_requests: none, page_size: 100'
  const summary = await here.run(server.url, 'token', `domains: [acme.com], ${windows}`)
  expect(summary).toMatchObject({ status: 'complete', rows: 1000 })
  const sizes = server.received.map(({ json }) => (json as Search).size)
  expect([sizes[0], sizes[1], sizes.at(-1)]).toEqual([100, 50, 100])
  // The row at which the larger pages begin.
  expect(sent).toBe(1001)
})

type Search = { from?: string; size: number; filters: { imported_at: { gte: string } } }

function isAfter(time: string, gte: string): boolean {
  return Date.parse(time) >= Date.parse(gte)
}
