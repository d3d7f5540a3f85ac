import { expect, test } from 'vitest'
import { type Sandbox, startSandbox } from '../support/sandbox.ts'
import { get, type page, post, SECOND_SEARCH } from './client.ts'

const domain = (number: number) => ({ type: 'domain', fqdn: `d${number}.example` })
const query = { type: 'domain', fqdn: 'quillmere.net' }

test('a search that comes too early gets the documented 429 and costs nothing', async () => {
  let now = 1_000_000
  let searches = 0
  const sandbox = await startSandbox({
    records: 30,
    requestsPerSecond: 2,
    basicRequestsPerSecond: 4,
    now: () => now,
  })
  // The same search again would be free.
  const search = () => post(sandbox, { query: domain(searches++) })
  const statusAfter = async (ms: number) => {
    now += ms
    return (await search()).status
  }
  expect(await statusAfter(0)).toBe(200)
  const refused = await search()
  expect(refused.status).toBe(429)
  expect(await refused.json()).toEqual({ error: { code: 'RATELIMIT_REACHED', message: 'ratelimit reached' } })
  expect(await statusAfter(449)).toBe(429)
  expect(await statusAfter(1)).toBe(200)
  // The tolerance of 50 ms does not add up: the next search has to be a full second after the first.
  expect(await statusAfter(498)).toBe(429)
  expect(await statusAfter(4)).toBe(200)
  const last = await search()
  expect(last.headers.get('x-flare-global-searches-remaining')).toBe('999997')
  expect(sandbox.requests.map(({ tooFast }) => Number(tooFast)).join('')).toBe('0110101')
})

test('all requests except global searches have a rate limit of their own', async () => {
  let now = 0
  const sandbox = await startSandbox({ requestsPerSecond: 1, basicRequestsPerSecond: 4, now: () => now })
  expect((await post(sandbox, { query })).status).toBe(200)
  expect((await post(sandbox, { query }, SECOND_SEARCH)).status).toBe(200)
  expect((await get(sandbox, '/tokens/test')).status).toBe(429)
  now += 250
  expect((await get(sandbox, '/firework/v4/threat_flow/reports/1')).status).toBe(200)
  expect((await post(sandbox, { query })).status).toBe(429)
})

const REMAINING = 'x-flare-global-searches-remaining'
const BATCH = 'x-flare-global-searches-batch-reached'

test('a header counts the remaining searches down, and at zero the response is QUOTA_EXCEEDED', async () => {
  const sandbox = await startSandbox({ quota: 2, rowsPerSearch: 0 })
  const left = async (number: number) => {
    const response = await post(sandbox, { query: domain(number) })
    const { headers } = response
    await response.arrayBuffer()
    return [response.status, headers.get(REMAINING)]
  }
  expect(await left(1)).toEqual([200, '1'])
  expect((await post(sandbox, { query, size: 0 })).status).toBe(422)
  expect((await post(sandbox, { query }, SECOND_SEARCH)).headers.has(REMAINING)).toBe(false)
  expect(await left(2)).toEqual([200, '0'])
  expect(await left(3)).toEqual([403, '0'])
  const response = await post(sandbox, { query: domain(3) })
  expect(await response.json()).toMatchObject({ error: { code: 'QUOTA_EXCEEDED' } })
})

/** Searches left after each page of a chain, and whether the rows that a search covers are used up. */
async function quotaOf(sandbox: Sandbox, body: object): Promise<(string | null)[][]> {
  const seen: (string | null)[][] = []
  let from: string | null = null
  do {
    const response: Response = await post(sandbox, { ...body, from })
    seen.push([response.headers.get(REMAINING), response.headers.get(BATCH)])
    from = ((await response.json()) as Awaited<ReturnType<typeof page>>).next
  } while (from)
  return seen
}

test('a search covers a hundred rows along its cursors, and the header says when they are used up', async () => {
  const sandbox = await startSandbox({ records: 250, quota: 1000 })
  expect(await quotaOf(sandbox, { query, size: 50 })).toEqual([
    ['999', 'false'],
    ['999', 'true'],
    ['998', 'false'],
    ['998', 'true'],
    ['997', 'false'],
  ])
  const other = await startSandbox({ records: 250, quota: 1000 })
  expect(await quotaOf(other, { query, size: 10_000 })).toEqual([['997', 'false']])
})

test('the same search again is free for ten minutes, and so is the first of one with other filters', async () => {
  let now = 0
  const sandbox = await startSandbox({ records: 150, quota: 100, now: () => now })
  const body = { query, size: 1000 }
  const filtered = { ...body, filters: { imported_at: { gte: '2024-01-01' } } }
  const left = async (search: object) => (await quotaOf(sandbox, search))[0]![0]
  expect(await left(body)).toBe('98')
  expect(await left(body)).toBe('98')
  // The first hundred rows are free.
  expect(await left(filtered)).toBe('97')
  now += 10 * 60_000
  expect(await left(body)).toBe('95')
})
