import { describe, expect, it } from 'vitest'
import { WindowRun } from '../../src/core/index.ts'
import type { PlannedChain } from '../../src/pipeline/index.ts'
import { nameQuery } from '../../src/pipeline/index.ts'
import { ChainQueue } from '../../src/run/chains/chain-queue.ts'
import { exportsTo, type Fields, itemAt, sandboxOf, serviceOf } from './world.ts'

const chain = (name: string): PlannedChain => ({
  kind: 'new',
  query: nameQuery({ type: 'domain', fqdn: name }, name),
  windows: WindowRun.of('asc', [null]),
})

describe('the queue of chains', () => {
  it('takes a chain from the plan when it is needed', async () => {
    let taken = 0
    function* plan(): Generator<PlannedChain> {
      for (; taken < 1_000_000; ) yield chain(`q${taken++}`)
    }
    const queue = new ChainQueue(plan(), 4)
    for (let slot = 0; slot < 50; slot++) await queue.next()
    expect(taken).toBe(50)
  })

  it('hands a part to an idle slot, or else out before all others', async () => {
    const [a, b, part, rest] = [chain('a'), chain('b'), chain('part'), chain('rest')]
    const queue = new ChainQueue([a, b], 2)
    expect(await queue.next()).toBe(a)
    queue.add(rest)
    expect(await queue.next()).toBe(rest)
    expect(await queue.next()).toBe(b)
    const waiting = queue.next()
    expect(queue.idle).toBe(1)
    queue.add(part)
    expect(await waiting).toBe(part)
  })

  it.each([
    [1, 1, false],
    [2, 1, true],
    [3, 2, false],
    [4, 2, true],
    [4, 3, false],
    [4, 4, false],
  ])('of %i slots, %i have a chain: each may request a page ahead: %s', (slots, chains, mayPrefetch) => {
    const queue = new ChainQueue(
      Array.from({ length: chains }, () => chain('a')),
      slots,
    )
    for (let slot = 0; slot < slots; slot++) void queue.next()
    return expect.poll(() => queue.mayPrefetch).toBe(mayPrefetch)
  })

  it('ends when every slot waits or has left', async () => {
    const queue = new ChainQueue([], 3)
    const waiting = [queue.next(), queue.next()]
    expect(queue.idle).toBe(2)
    queue.leave()
    expect(await Promise.all(waiting)).toEqual([null, null])
  })
})

describe('a query over six months', () => {
  const extract = (more: string, domains = 'a.example') =>
    `domains: [${domains}], windows: { from: 2024-01-01, until: 2024-07-01, every: month }, ${more}`
  const half = { from: '2024-01-01', until: '2024-07-01' }

  it.each([1, 2, 4])('that fits a page takes one request with %i slots', async (slots) => {
    const sandbox = await sandboxOf({
      records: 300,
      domains: ['a.example', 'b.example'],
      latencyMs: 5,
      ...half,
    })
    const here = exportsTo()
    const summary = await here.run(
      sandbox.baseUrl,
      sandbox.token,
      extract(`concurrency: ${slots}`, 'a.example, b.example'),
    )
    expect(summary).toMatchObject({ status: 'complete', rows: 600, requests: 2 })
  })

  async function exported(pageSize: number) {
    const sandbox = await sandboxOf({ records: 600, domains: ['a.example'], latencyMs: 5, ...half })
    const here = exportsTo()
    const summary = await here.run(
      sandbox.baseUrl,
      sandbox.token,
      extract(`concurrency: 4, page_size: ${pageSize}`),
    )
    expect(summary).toMatchObject({ status: 'complete', rows: 600 })
    expect(new Set(here.ids()).size).toBe(600)
    const chains = new Set(
      sandbox.requests.map(({ body }) => JSON.stringify(body).replace(/"from":"[^"]*",/, '')),
    )
    return { requests: summary.requests, chains: chains.size }
  }

  it('is divided where pages are slow and forty are left: at most one request more for each division', async () => {
    const { requests, chains } = await exported(5)
    expect(chains).toBeGreaterThan(1)
    // Six windows of twenty pages each.
    expect(requests).toBeLessThanOrEqual(120 + 2 * (chains - 1))
  })

  it('is not divided where fewer pages are left, however slow they are', async () => {
    expect(await exported(20)).toEqual({ requests: 30, chains: 1 })
  })
})

describe('a week with a row each ten minutes', () => {
  const MINUTE_MS = 60_000
  const PAGE = 5
  const FROM = Date.parse('2024-01-01T00:00:00Z')
  const rows = Array.from({ length: 7 * 144 }, (_, i) =>
    itemAt(i + 1, new Date(FROM + i * 10 * MINUTE_MS).toISOString()),
  )
  const week = 'domains: [a.example], windows: { from: 2024-01-01, until: 2024-01-08, every: 1d }'

  async function exported(items: readonly Fields[]) {
    const service = await serviceOf(items, PAGE)
    const here = exportsTo()
    await here.run(service.url, 'token', `${week}, page_size: ${PAGE}, concurrency: 2`)
    return { ids: here.ids().sort((a, b) => a - b), chains: new Set(service.requested().map(filterOf)) }
  }
  const filterOf = (request: string): string => request.split(' ')[0]!
  const all = rows.map((_, i) => i + 1)

  it('has every row if the last one before the division comes fifty minutes late, on the page after the cut', async () => {
    const { chains } = await exported(rows)
    expect(chains.size).toBe(2)
    const cut = [...chains].map((filter) => filter.slice(0, 10)).sort()[1]!
    const last = (Date.parse(cut) - FROM) / MINUTE_MS / 10 - 1
    expect(last % PAGE).toBe(0)
    const [before, row, after] = [rows.slice(0, last), rows[last]!, rows.slice(last + 1)]
    const found = await exported([...before, ...after.slice(0, PAGE), row, ...after.slice(PAGE)])
    expect(found.chains.size).toBe(2)
    expect(found.ids).toEqual(all)
  })

  it('is not divided before a hundred rows came', async () => {
    const { ids, chains } = await exported(rows.filter((_, i) => i % 10 === 0))
    expect({ ids: ids.length, chains: chains.size }).toEqual({ ids: 101, chains: 1 })
  })
})
