import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { collect, domainChain, fakeClock, open, pagesOf, sendJson, sendPage, serve } from './support.ts'

const RATE_LIMITED = { error: { code: 'RATELIMIT_REACHED', message: 'ratelimit reached' } }

describe('after a 429', () => {
  it.each<[Record<string, string | string[]>, number]>([
    [{}, 10_000],
    [{ 'retry-after': '4' }, 4_000],
    // The first counts.
    [{ 'retry-after': ['4', '9'] }, 4_000],
    [{ 'retry-after': 'Mon, 01 Jan 2024 00:00:30 GMT', date: 'Mon, 01 Jan 2024 00:00:00 GMT' }, 30_000],
  ])('with %j nothing is sent for %i ms', async (headers, pauseMs) => {
    const clock = fakeClock()
    const times: number[] = []
    const server = await serve((_request, response, index) => {
      times.push(clock.monotonicMs())
      if (index === 0) sendJson(response, RATE_LIMITED, { status: 429, headers })
      else sendPage(response, null)
    })
    await collect(open(server.url, { clock }), domainChain())
    expect(times).toEqual([0, pauseMs])
  })

  it('all requests in flight are one incident', async () => {
    const held: ServerResponse[] = []
    const server = await serve((_request, response, index) => {
      if (index < 4) held.push(response)
      else sendPage(response, null)
    })
    const warnings: string[] = []
    const log = (level: string, message: string): void => {
      if (level === 'warn') warnings.push(message)
    }
    const service = open(server.url, { clock: fakeClock(), log, limits: { connections: 4 } })
    const all = Promise.all(Array.from({ length: 4 }, () => collect(service, domainChain())))
    await eventually(() => expect(held).toHaveLength(4))
    for (const response of held) sendJson(response, RATE_LIMITED, { status: 429 })
    await all
    expect(warnings).toEqual(['the service responded with 429; all requests wait'])
  })

  it.each([
    [4, []],
    [12, ['429 comes again and again: set service.requests_per_second to what the service allows']],
  ])('of %i in a run, the fifth names the setting: %j', async (times, expected) => {
    const server = await serve((_request, response, index) => {
      if (index % 2 === 0 && index < 2 * times) sendJson(response, RATE_LIMITED, { status: 429 })
      else sendPage(response, index < 2 * times ? `c${index}` : null)
    })
    const named: string[] = []
    const log = (_level: string, message: string): void => {
      if (message.includes('requests_per_second')) named.push(message)
    }
    await collect(open(server.url, { clock: fakeClock(), log }), domainChain())
    expect(named).toEqual(expected)
  })

  it('no attempt counts that got it after other requests had passed', async () => {
    let refused = 0
    const server = await serve((request, response, index) => {
      if (request.json.from !== 'unlucky') return sendPage(response, index < 40 ? `c${index}` : null)
      if (++refused > 15) sendPage(response, null)
      else sendJson(response, RATE_LIMITED, { status: 429 })
    })
    const service = open(server.url, { clock: fakeClock(), settings: { retries: 2 } })
    const unlucky = collect(service, domainChain({ cursor: 'unlucky' }))
    await Promise.all([unlucky, collect(service, domainChain({ cursor: 'lucky' }))])
    expect(refused).toBe(16)
  })

  it('other partitions and token tests wait as well, and the pause is visible in the progress', async () => {
    const clock = fakeClock({ auto: false })
    const held: ServerResponse[] = []
    const server = await serve((_request, response, index) => {
      if (index === 0) held.push(response)
      else sendPage(response, null)
    })
    const service = open(server.url, { clock, settings: { requestsPerSecond: 1 } })
    expect(service.counters.pausedUntilMs).toBeNull()
    const first = collect(service, domainChain())
    await eventually(() => expect(held).toHaveLength(1))
    // Waits for its permit, a second later, when the pause begins.
    const second = collect(service, domainChain())
    await eventually(() => expect(clock.pending()).toEqual([1113]))
    sendJson(held[0]!, RATE_LIMITED, { status: 429 })
    await eventually(() => expect(service.counters.pausedUntilMs).toBe(clock.now() + 10_000))
    const test = service.testToken('/tokens/test')
    await eventually(() => expect(clock.pending()).toEqual([1113, 10_000]))
    clock.advance(1113)
    await eventually(() => expect(clock.pending()).toEqual([10_000, 10_000]))
    expect(server.received).toHaveLength(1)
    clock.advance(10_000 - 1113)
    await test
    await eventually(() => expect(server.received).toHaveLength(3))
    expect(service.counters.pausedUntilMs).toBeNull()
    clock.advance(1_100)
    await Promise.all([first, second])
    expect(server.received).toHaveLength(4)
  })

  it('a request with a permit but no connection yet waits for the end of the pause', async () => {
    const clock = fakeClock()
    const times: [string, number][] = []
    const server = await serve((request, response, index) => {
      times.push([String(request.json.from), clock.monotonicMs()])
      if (index === 0) setImmediate(() => sendJson(response, RATE_LIMITED, { status: 429 }))
      else sendPage(response, null)
    })
    // Every partition has to connect first; at this rate permits come faster than connections.
    const service = open(server.url, {
      clock,
      limits: { connections: 1 },
      settings: { requestsPerSecond: 1e6 },
    })
    await Promise.all(['a', 'b', 'c'].map((cursor) => collect(service, domainChain({ cursor }))))
    expect(times.map(([, at]) => at >= 10_000)).toEqual([false, true, true, true])
    expect(service.counters).toMatchObject({ requests: 4, retries: 1 })
  })

  it('the response counts even when its body never comes', async () => {
    const clock = fakeClock()
    const server = await serve((_request, response, index) => {
      if (index > 0) return sendPage(response, null)
      response.writeHead(429, { 'content-length': '100', 'retry-after': '60' })
      response.write('{', () => response.destroy())
    })
    await collect(open(server.url, { clock }), domainChain())
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(60_000)
  })

  it('a page in flight is still received', async () => {
    const clock = fakeClock()
    const held: ServerResponse[] = []
    const server = await serve((_request, response) => {
      held.push(response)
    })
    const service = open(server.url, { clock })
    const slow = pagesOf(service, domainChain()).next()
    await eventually(() => expect(held).toHaveLength(1))
    const limited = collect(service, domainChain())
    await eventually(() => expect(held).toHaveLength(2))
    sendJson(held[1]!, RATE_LIMITED, { status: 429, headers: { 'retry-after': '600' } })
    await eventually(() => expect(held).toHaveLength(3))
    sendPage(held[0]!, null)
    sendPage(held[2]!, null)
    expect((await slow).done).toBe(false)
    await limited
  })
})
