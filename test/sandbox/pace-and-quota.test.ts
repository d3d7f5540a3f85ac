import { expect, test } from 'vitest'
import { rateLimit } from '../../src/sandbox/rate-limit.ts'
import { get, type page, post, SECOND_SEARCH, sandboxWith } from './client.ts'

const query = { type: 'domain', fqdn: 'quillmere.net' }

test('a search that comes too early gets the documented 429 and costs nothing', async () => {
  let now = 1_000_000
  const sandbox = await sandboxWith({
    records: 30,
    requestsPerSecond: 2,
    basicRequestsPerSecond: 4,
    rateLimitRetryAfter: '10',
    now: () => now,
  })
  const statusAfter = async (ms: number) => {
    now += ms
    return (await post(sandbox, { query })).status
  }
  expect(await statusAfter(0)).toBe(200)
  const refused = await post(sandbox, { query })
  expect(refused.status).toBe(429)
  expect(await refused.json()).toEqual({ error: { code: 'RATELIMIT_REACHED', message: 'ratelimit reached' } })
  expect(refused.headers.get('retry-after')).toBe('10')
  expect(await statusAfter(497)).toBe(429)
  expect(await statusAfter(1)).toBe(200)
  // Lent, not given: two milliseconds early before means no earlier than a full second after the first.
  expect(await statusAfter(498)).toBe(429)
  expect(await statusAfter(4)).toBe(200)
  const last = await post(sandbox, { query })
  expect(last.headers.get('x-flare-global-searches-remaining')).toBe('999997')
  expect(sandbox.requests.map((request) => request.tooFast)).toEqual([
    false,
    true,
    true,
    false,
    true,
    false,
    true,
  ])
})

test('everything but global searches has a tier of its own', async () => {
  let now = 0
  const sandbox = await sandboxWith({ requestsPerSecond: 1, basicRequestsPerSecond: 4, now: () => now })
  expect((await post(sandbox, { query })).status).toBe(200)
  expect((await post(sandbox, { query }, SECOND_SEARCH)).status).toBe(200)
  expect((await get(sandbox, '/tokens/test')).status).toBe(429)
  now += 250
  expect((await get(sandbox, '/firework/v4/threat_flow/reports/1')).status).toBe(200)
  expect((await post(sandbox, { query })).status).toBe(429)
})

test('over a long time nobody passes the limit', () => {
  const limit = rateLimit(10, 2)
  let taken = 0
  for (let ms = 0; ms < 60_000; ms++) if (limit.take(ms)) taken += 1
  expect(taken).toBeLessThanOrEqual(601)
  expect(taken).toBeGreaterThan(590)
})

test('searches left are counted down in a header, and at none comes QUOTA_EXCEEDED', async () => {
  const sandbox = await sandboxWith({ quota: 2 })
  const left = async () => {
    const response = await post(sandbox, { query })
    const { headers } = response
    await response.arrayBuffer()
    return [response.status, headers.get('x-flare-global-searches-remaining')]
  }
  expect(await left()).toEqual([200, '1'])
  expect((await post(sandbox, { query, size: 0 })).status).toBe(422)
  expect(
    (await post(sandbox, { query }, SECOND_SEARCH)).headers.has('x-flare-global-searches-remaining'),
  ).toBe(false)
  expect(await left()).toEqual([200, '0'])
  expect(await left()).toEqual([403, '0'])
  const response = await post(sandbox, { query })
  expect(await response.json()).toMatchObject({ error: { code: 'QUOTA_EXCEEDED' } })
})

test('batch-reached says that the next page is charged as another search', async () => {
  const sandbox = await sandboxWith({ records: 50, batchPages: 3 })
  const seen: (string | null)[][] = []
  let from: string | null = null
  do {
    const response: Response = await post(sandbox, { query, from })
    const remaining = response.headers.get('x-flare-global-searches-remaining')
    seen.push([remaining, response.headers.get('x-flare-global-searches-batch-reached')])
    from = ((await response.json()) as Awaited<ReturnType<typeof page>>).next
  } while (from)
  expect(seen).toEqual([
    ['999999', 'false'],
    ['999999', 'false'],
    ['999999', 'true'],
    ['999998', 'false'],
    ['999998', 'false'],
  ])
})
