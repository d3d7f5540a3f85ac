import { describe, expect, it } from 'vitest'
import { searchesOf } from '../../src/core/index.ts'
import { collect, decode, domainChain, failure, fakeClock, open, sendPage, serve } from './support.ts'

describe('the request budget', () => {
  it('is never exceeded, however many partitions share it', async () => {
    const server = await serve((_request, response, index) => sendPage(response, `c${index}`))
    const service = open(server.url, { limits: { maxRequests: 7 } })
    const errors = await Promise.all(
      Array.from({ length: 12 }, () => failure(collect(service, domainChain()))),
    )
    expect(new Set(errors.map(({ kind }) => kind))).toEqual(new Set(['quota']))
    expect(server.received).toHaveLength(7)
    expect(service.counters.requests).toBe(7)
  })

  it('includes a request repeated with a new token', async () => {
    const secrets = { TOKEN: 'old' }
    const server = await serve((_request, response) => {
      secrets.TOKEN = 'new'
      response.writeHead(401).end()
    })
    const service = open(server.url, { secrets, limits: { maxRequests: 1 } })
    expect((await failure(collect(service, domainChain()))).kind).toBe('quota')
    expect(service.counters.requests).toBe(1)
  })

  it('is checked before any wait', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const clock = fakeClock({ auto: false })
    const service = open(server.url, {
      clock,
      limits: { maxRequests: 1 },
      settings: { requestsPerSecond: 0.01 },
    })
    await collect(service, domainChain())
    expect((await failure(collect(service, domainChain()))).kind).toBe('quota')
    expect(clock.waits).toEqual([])
  })
})

describe('the searches left', () => {
  it('are those of the last response, and a page that may cost too many is not requested', async () => {
    const left = [300, 200, 150]
    const server = await serve((_request, response, index) => {
      response.setHeader('x-flare-global-searches-remaining', String(left[index]))
      sendPage(response, `c${index}`)
    })
    const service = open(server.url, { limits: { minSearchesRemaining: 100 } })
    expect(service.counters.searchesRemaining).toBeNull()
    const pages: unknown[] = []
    const error = await failure(
      collect(service, domainChain(), (body, page) => {
        pages.push(page)
        return decode(body, page)
      }),
    )
    expect(error.kind).toBe('quota')
    expect(error.what).toBe(
      'The service reports that 150 searches are left, at least 100 are to be kept, and the next page may cost 100',
    )
    expect(pages).toHaveLength(3)
    expect(service.counters.searchesRemaining).toBe(150)
  })

  it('stop requests, too, that waited for their permit when the response came', async () => {
    const server = await serve((_request, response) => {
      response.setHeader('x-flare-global-searches-remaining', '5')
      sendPage(response, null)
    })
    const service = open(server.url, {
      clock: fakeClock(),
      settings: { requestsPerSecond: 1 },
      limits: { minSearchesRemaining: 10, connections: 1 },
    })
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => collect(service, domainChain())))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(server.received).toHaveLength(1)
  })

  it('are unknown before the first response, so only one request is sent', async () => {
    let most = 0
    let open_ = 0
    const server = await serve((_request, response, index) => {
      open_++
      if (index === 0) most = Math.max(most, open_)
      setTimeout(() => {
        if (index === 0) expect(open_).toBe(1)
        open_--
        response.setHeader('x-flare-global-searches-remaining', String(100_000 - index))
        sendPage(response, null)
      }, 30)
    })
    const service = open(server.url, { limits: { minSearchesRemaining: 100 } })
    await Promise.all([1, 2, 3, 4].map(() => collect(service, domainChain())))
    expect(server.received).toHaveLength(4)
    expect(most).toBe(1)
  })

  it.each([
    ['are kept', { minSearchesRemaining: 310 }],
    ["are the month's", { monthly: { searches: 42, before: new Map() } }],
  ])('that %s include requests in flight', async (_name, limits) => {
    const server = await serve((_request, response, index) => {
      response.setHeader('x-flare-global-searches-remaining', String(351 - index))
      // Later than the next request is sent.
      setTimeout(() => sendPage(response, index < 60 ? `c${index}` : null, Array(1000).fill({})), 5)
    })
    const service = open(server.url, { limits, settings: { rowsPerSearch: null } })
    const chains = [1, 2, 3].map(() => failure(collect(service, domainChain({ pageSize: 1000 }))))
    expect(new Set((await Promise.all(chains)).map(({ kind }) => kind))).toEqual(new Set(['quota']))
    expect(service.counters.searchesRemaining).toBe(310)
  })

  it.each([null, 'many', '-1', '9007199254740992'])(
    'stay unknown when the header is %j, and nothing is stopped',
    async (value) => {
      const server = await serve((_request, response, index) => {
        if (value !== null) response.setHeader('x-flare-global-searches-remaining', value)
        sendPage(response, index < 5 ? `c${index}` : null)
      })
      const monthly = { searches: 100, before: new Map() }
      const service = open(server.url, { limits: { minSearchesRemaining: 100_000, monthly } })
      expect(await collect(service, domainChain())).toHaveLength(6)
      expect(service.counters).toMatchObject({ searchesSpent: null, searchesRemaining: null })
    },
  )
})

it('a page costs a search for each 100 rows, or as many as are set, or one search', () => {
  expect([0, 1, 100, 101, 10_000].map((rows) => searchesOf(rows, 100))).toEqual([1, 1, 1, 2, 100])
  expect([0, 250, 10_000].map((rows) => searchesOf(rows, 250))).toEqual([1, 1, 40])
  expect([0, 10_000].map((rows) => searchesOf(rows, null))).toEqual([1, 1])
})
