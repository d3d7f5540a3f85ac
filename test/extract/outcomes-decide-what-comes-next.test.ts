import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { NOT_MEASURED } from '../../src/core/index.ts'
import { NotServed, PageSizes } from '../../src/extract/index.ts'
import { eventually } from '../support/eventually.ts'
import { collect, domainChain, failure, fakeClock, open, sendPage, serve } from './support.ts'

function pageWithLeft(response: ServerResponse, left: number): void {
  response.setHeader('x-flare-global-searches-remaining', String(left))
  sendPage(response, null, [])
}

it('a page that does not come is requested twice in each size, with a pause before the second, and is served in none', async () => {
  const clock = fakeClock()
  const times: number[] = []
  const server = await serve((_request, response) => {
    times.push(clock.monotonicMs())
    response.writeHead(504).end()
  })
  const sizes = new PageSizes(80, { limit: null, bindsSizes: false })
  const service = open(server.url, { clock })
  const error = await failure(collect(service, domainChain({ pageSize: 80, sizes })))
  expect(error).toBeInstanceOf(NotServed)
  // The least size has as many retries as anything.
  expect(server.received.map(({ json }) => json.size)).toEqual([80, 80, 40, 40, 20, 20, 10, 10, 10, 10])
  // A smaller page is sent at once.
  const waits = times.slice(1).map((time, i) => time - times[i]!)
  for (const [i, wait] of waits.entries()) {
    if ([1, 3, 5].includes(i)) expect(wait).toBeLessThan(10)
    else expect(wait).toBeGreaterThanOrEqual(Math.min(4000, 250 * 2 ** i))
  }
})

it('a request that lost its reservation before it was written is sent later, and is no retry', async () => {
  const clock = fakeClock({ auto: false })
  const held: ServerResponse[] = []
  const server = await serve((_request, response) => {
    held.push(response)
  })
  const attempts: unknown[] = []
  const service = open(server.url, {
    clock,
    settings: { requestsPerSecond: 1 },
    limits: { minSearchesRemaining: 0 },
    measures: NOT_MEASURED,
    log: (_level, message, fields) => void (message === 'request' && attempts.push(fields?.attempt)),
  })
  const pages: Promise<unknown>[] = []
  const send = async (): Promise<void> => {
    pages.push(collect(service, domainChain()))
    if (held.length > 0) {
      await eventually(() => expect(clock.pending()).toHaveLength(1))
      clock.advance(1_200)
    }
    await eventually(() => expect(held).toHaveLength(pages.length))
  }
  await send()
  // Each page may cost 100.
  pageWithLeft(held[0]!, 300)
  await pages[0]
  await send()
  await send()
  const last = collect(service, domainChain())
  await eventually(() => expect(clock.pending()).toHaveLength(1))
  // Others spend as well: with the other page in flight, too few searches are left.
  pageWithLeft(held[1]!, 190)
  await pages[1]
  clock.advance(1_200)
  // It waits for that page, so there is time for a write that must not come.
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(held).toHaveLength(3)
  pageWithLeft(held[2]!, 189)
  await eventually(() => expect(held).toHaveLength(4))
  pageWithLeft(held[3]!, 188)
  await last
  expect(attempts).toEqual([1, 1, 1, 1])
  expect(service.counters).toMatchObject({ requests: 4, retries: 0, searchesRemaining: 188 })
})
