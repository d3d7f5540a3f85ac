import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { PageSizes } from '../../src/extract/index.ts'
import { portOf } from '../support/listening.ts'
import { collect, domainChain, failure, fakeClock, open, sendJson, sendPage, serve } from './support.ts'

describe('a failed request', () => {
  // In halves only after some that a page of the size may cause: `outcomes-decide-what-comes-next`.
  it.each([
    [1, 408, {}],
    [3, 500, {}],
    [3, 503, {}],
    [3, 504, { 'retry-after': '1' }],
    // Web pages after an answer of the service say nothing of the cursor.
    [2, 400, {}],
    [2, 404, {}],
    [2, 410, {}],
    [2, 502, {}],
  ])('is sent again as it was after %i times status %i %j', async (times, status, headers) => {
    const server = await serve((_request, response, index) => {
      if (index > 0 && index <= times) response.writeHead(status, headers).end('<html>oops</html>')
      else sendPage(response, index === 0 ? 'a cursor' : null)
    })
    const service = open(server.url, { clock: fakeClock() })
    const sizes = new PageSizes(10_000, { limit: null, bindsSizes: false })
    const [, page] = await collect(service, domainChain({ sizes }))
    expect(page?.requests).toBe(times + 1)
    expect(service.counters).toMatchObject({ requests: times + 2, retries: times })
    expect(new Set(server.received.slice(1).map(({ body }) => body)).size).toBe(1)
  })

  it.each([
    [0, 500],
    [2, 503],
  ])('fails after the first request and %i retries with status %i', async (retries, status) => {
    const server = await serve((_request, response) => response.writeHead(status).end())
    const service = open(server.url, { clock: fakeClock(), settings: { retries } })
    const error = await failure(collect(service, domainChain({ pageSize: 60 })))
    expect(error.kind).toBe('transient')
    expect(error.message).toContain(`failed after ${retries + 1} attempt`)
    // A gateway may give up large pages.
    const hint = 'If only pages of this size fail (60 rows), lower extract.page_size.'
    expect(error.message.includes(hint)).toBe(status === 503)
    expect(server.received).toHaveLength(retries + 1)
    expect(service.counters).toMatchObject({ requests: retries + 1, retries })
  })

  it('is retried for two minutes if no connection was ever made, as the log says', async () => {
    const clock = fakeClock()
    const retries: unknown[] = []
    const service = open('http://127.0.0.1:1', {
      clock,
      settings: { retries: 8 },
      // What is not written costs nothing of it.
      limits: { maxRequests: 3 },
      log: (_level, _message, fields) =>
        void (fields?.event === 'retry' && retries.push([fields.retry, fields.of])),
    })
    const error = await failure(collect(service, domainChain()))
    expect(error.what).toBe(
      'Nothing accepts connections at 127.0.0.1:1 (ECONNREFUSED); failed after 9 attempts',
    )
    expect(retries).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((retry) => [retry, 8]))
    expect(error.next).toContain('service.base_url')
    expect(clock.waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(60_000)
    expect(service.counters).toMatchObject({ requests: 0, retries: 0, isReached: false })
  })

  it('is retried as usual once a connection was made', async () => {
    // Closing the connection without a response also closes the listener.
    const server = createServer((socket) => {
      server.close()
      socket.on('data', () => socket.destroy())
    })
    const service = open(`http://127.0.0.1:${await portOf(server)}`, {
      clock: fakeClock(),
      settings: { retries: 8 },
    })
    const error = await failure(collect(service, domainChain()))
    expect(error.what).toContain('failed after 9 attempts')
    expect(service.counters).toMatchObject({ requests: 1, isReached: true })
  })

  it('waits twice as long from retry to retry, up to a minute, and each client for another time', async () => {
    const server = await serve((_request, response) => response.writeHead(500).end())
    const firsts: number[] = []
    for (let client = 0; client < 12; client++) {
      const clock = fakeClock()
      await failure(collect(open(server.url, { clock, settings: { retries: 10 } }), domainChain()))
      const waits = clock.waits.filter((ms) => ms >= 200)
      expect(waits).toHaveLength(10)
      for (const [index, ms] of waits.entries()) {
        const ceilingMs = Math.min(60_000, 500 * 2 ** index)
        expect(ms).toBeGreaterThanOrEqual(ceilingMs / 2)
        expect(ms).toBeLessThanOrEqual(ceilingMs)
      }
      firsts.push(waits[0]!)
    }
    expect(new Set(firsts).size).toBeGreaterThan(10)
    expect(Math.max(...firsts) - Math.min(...firsts)).toBeGreaterThan(50)
  })

  const NEW_YEAR = 'Mon, 01 Jan 2024 00:00:00 GMT'
  it.each([
    ['7', NEW_YEAR, 7_000],
    ['Mon, 01 Jan 2024 00:00:20 GMT', NEW_YEAR, 20_000],
    // It is compared with the own clock if the response has none.
    ['Mon, 01 Jul 2024 00:00:20 GMT', null, 20_000],
    ['soon', NEW_YEAR, 0],
    ['2030-01-01', NEW_YEAR, 0],
  ] as const)('waits no less than Retry-After: %j, at %s', async (retryAfter, date, leastMs) => {
    const server = await serve((_request, response, index) => {
      if (index > 0) return sendPage(response, null)
      response.sendDate = false
      response.writeHead(503, { 'retry-after': retryAfter, ...(date === null ? {} : { date }) }).end()
    })
    const clock = fakeClock({ startMs: Date.parse('2024-07-01T00:00:00Z') })
    await collect(open(server.url, { clock }), domainChain())
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(leastMs)
    expect(clock.monotonicMs()).toBeLessThan(leastMs + 1_000)
  })

  it('is left for another run when Retry-After is beyond 15 minutes', async () => {
    const server = await serve((_request, response) =>
      response.writeHead(429, { 'retry-after': '901' }).end(),
    )
    const service = open(server.url, { clock: fakeClock() })
    expect((await failure(collect(service, domainChain()))).kind).toBe('quota')
    // No other chain sends a request either.
    expect((await failure(collect(service, domainChain()))).kind).toBe('quota')
    expect((await failure(service.testToken('/tokens/test'))).kind).toBe('quota')
    expect(server.received).toHaveLength(1)
  })

  it.each([
    [400, false, 'refused'],
    [403, false, 'credentials'],
    [400, true, 'cursor'],
    [404, true, 'cursor'],
    [413, true, 'refused'],
  ])('is not sent again after status %i (with a cursor: %s): %s', async (status, withCursor, kind) => {
    const server = await serve((_request, response) => sendJson(response, {}, { status }))
    const chain = domainChain(withCursor ? { cursor: 'saved' } : {})
    const error = await failure(collect(open(server.url), chain))
    expect(error.kind).toBe(kind)
    expect(error.message).toContain(String(status))
    expect(server.received).toHaveLength(1)
  })
})
