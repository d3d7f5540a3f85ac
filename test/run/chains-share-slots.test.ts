import { describe, expect, it } from 'vitest'
import { nameQuery, WindowRun } from '../../src/core/index.ts'
import type { PlannedChain } from '../../src/pipeline/index.ts'
import { ChainQueue } from '../../src/run/follow/chain-queue.ts'
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
