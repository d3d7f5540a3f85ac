import { describe, expect, it } from 'vitest'
import { nameQuery, WindowRun } from '../../src/core/index.ts'
import type { PlannedChain } from '../../src/pipeline/index.ts'
import { ChainQueue } from '../../src/run/follow/chain-queue.ts'
import { searchesOf } from '../support/sandbox.ts'
import { exportsTo, sandboxOf } from './world.ts'

const chain = (name: string): PlannedChain => ({
  kind: 'new',
  query: nameQuery({ type: 'domain', fqdn: name }, name),
  windows: WindowRun.of('asc', [null]),
})

describe('the queue of chains', () => {
  it('hands what is left of a chain out before all others', () => {
    const [a, b, rest] = [chain('a'), chain('b'), chain('rest')]
    const queue = new ChainQueue([a, b], 2)
    expect(queue.next()).toBe(a)
    queue.add([rest])
    expect([queue.next(), queue.next(), queue.next()]).toEqual([rest, b, null])
  })

  it.each([
    [1, 1, false],
    [3, 2, false],
    [4, 2, true],
    [4, 4, false],
  ])('of %i slots, %i have a chain: each may request a page ahead: %s', (slots, chains, mayPrefetch) => {
    const queue = new ChainQueue(
      Array.from({ length: chains }, () => chain('a')),
      slots,
    )
    for (let slot = 0; slot < slots; slot++) if (queue.next() === null) queue.leave()
    expect(queue.mayPrefetch).toBe(mayPrefetch)
  })
})

it.each([1, 4])('a query over six months that fits a page takes one request with %i slots', async (slots) => {
  const data = { from: '2024-01-01', until: '2024-07-01', latencyMs: 5 }
  const sandbox = await sandboxOf({ records: 300, domains: ['a.example', 'b.example'], ...data })
  const summary = await exportsTo().run(
    sandbox.baseUrl,
    sandbox.token,
    `domains: [a.example, b.example], windows: { from: 2024-01-01, until: 2024-07-01, every: month }, concurrency: ${slots}`,
  )
  expect(summary).toMatchObject({ status: 'complete', rows: 600, requests: 2 })
})

it.each([1, 3])('at most `concurrency` chains are in flight: %i', async (slots) => {
  const sandbox = await sandboxOf({ records: 60, domains: ['a.example'], latencyMs: 15 })
  const windows = 'windows: { from: 2024-01-01, until: 2024-07-01, every: month, per_chain: 1 }'
  const extract = `domains: [a.example], ${windows}, page_size: 3, concurrency: ${slots}`
  await exportsTo().run(sandbox.baseUrl, sandbox.token, extract)
  // A chain requests a page after it has the one before, so it is in flight from its first request to its last.
  const chains = searchesOf(sandbox.requests).map(({ body }) =>
    JSON.stringify((body as { filters: unknown }).filters),
  )
  const inFlight = chains.map(
    (_, i) => new Set(chains.slice(0, i + 1).filter((each) => chains.lastIndexOf(each) >= i)).size,
  )
  expect(new Set(chains).size).toBe(6)
  expect(Math.max(...inFlight)).toBe(slots)
})
