import { describe, expect, test } from 'vitest'
import { DEMO_DOMAINS, type SearchQuery, startSandbox } from '../support/sandbox.ts'
import { micros, page, pages, post, SEARCH, searchAll } from './client.ts'

const options = { records: 1500, nastyRate: 0.05 }

/** Every credential of every domain, and what a query should find in it, decided on the JSON alone. */
async function everything() {
  const sandbox = await startSandbox(options)
  const all = DEMO_DOMAINS.flatMap((fqdn) => [
    ...sandbox.expected({ query: { type: 'domain', fqdn }, include: ['auth_domains'] }),
  ])
  const local = (name: string) => name.slice(0, name.lastIndexOf('@'))
  const host = (name: string) => name.slice(name.lastIndexOf('@') + 1)
  const common = all.find((item) => local(item.identity_name).match(/^[a-z]+\.[a-z]+$/))!.identity_name
  const nasty = all.find((item) => item.identity_name.startsWith('say "hello"'))!.identity_name
  const queries: Array<[SearchQuery, (item: (typeof all)[number]) => boolean]> = [
    [{ type: 'domain', fqdn: 'quillmere.net' }, (i) => host(i.identity_name).endsWith('quillmere.net')],
    [{ type: 'domain', fqdn: 'Mail.Quillmere.Net' }, (i) => host(i.identity_name) === 'mail.quillmere.net'],
    [{ type: 'domain', fqdn: 'nowhere.example' }, () => false],
    [{ type: 'email', email: common }, (i) => i.identity_name === common],
    [{ type: 'email', email: nasty }, (i) => i.identity_name === nasty],
    [{ type: 'keyword', keyword: local(common) }, (i) => local(i.identity_name) === local(common)],
    [{ type: 'secret', secret: 'lone high \ud83d end' }, (i) => i.hash === 'lone high \ud83d end'],
    [{ type: 'auth_domain', fqdn: 'id.plumwire.net' }, (i) => i.auth_domains!.includes('id.plumwire.net')],
  ]
  return { sandbox, all, queries }
}

describe('following next to the end finds every match once', () => {
  test.each(['asc', 'desc'] as const)('for each kind of query, %s', async (order) => {
    const { sandbox, all, queries } = await everything()
    expect(all).toHaveLength(6000)
    expect(new Set(all.map((item) => item.id)).size).toBe(6000)
    for (const [query, matches] of queries) {
      const wanted = all.filter(matches).map((item) => item.id)
      const found = await searchAll(sandbox, { query, order, size: 97 })
      const ids = found.map((item) => item.id)
      expect([...ids].sort(), JSON.stringify(query)).toEqual([...wanted].sort())
      const own = [...sandbox.expected({ query })].map((item) => item.id)
      expect(order === 'asc' ? ids : ids.reverse()).toEqual(own)
      const times = found.map((item) => micros(item.imported_at))
      if (order === 'desc') times.reverse()
      expect(times.every((time, i) => i === 0 || times[i - 1]! <= time)).toBe(true)
      // A query that finds nothing tests nothing; only the one for an unknown domain may.
      if (query.type !== 'domain') expect(ids.length).toBeGreaterThan(0)
    }
  })
})

test('the defaults are ten items, newest first', async () => {
  const sandbox = await startSandbox()
  const first = await page(sandbox, { query: { type: 'domain', fqdn: 'quillmere.net' } })
  const own = [...sandbox.expected({ query: { type: 'domain', fqdn: 'quillmere.net' } })]
  expect(first.items).toEqual(own.slice(-10).reverse())
  expect(first.items[0]).not.toHaveProperty('known_password_id')
})

test('next is null when the last page is exactly full', async () => {
  const sandbox = await startSandbox({ records: 200 })
  const found = await pages(sandbox, { query: { type: 'domain', fqdn: 'quillmere.net' }, size: 100 })
  expect(found.map(({ items }) => items.length)).toEqual([100, 100])
})

test.each(['asc', 'desc'] as const)('empty and short pages hide nothing, %s', async (order) => {
  const sandbox = await startSandbox({ records: 1000, emptyPageRate: 0.4, shortPageRate: 0.5 })
  const query = { type: 'domain', fqdn: 'quillmere.net' } as const
  const found = await pages(sandbox, { query, order, size: 20 })
  const ids = found.flatMap(({ items }) => items.map((item) => item.id))
  const own = [...sandbox.expected({ query })].map((item) => item.id)
  expect(order === 'asc' ? ids : ids.reverse()).toEqual(own)
  const sizes = found.map(({ items }) => items.length)
  expect(sizes).toContain(0)
  expect(sizes.some((size) => size > 0 && size < 20)).toBe(true)
  const filters = { imported_at: { gte: '2030-01-01' } }
  expect(await searchAll(sandbox, { query, order, filters })).toEqual([])
})

const query = { type: 'domain', fqdn: 'tarnhollow.io' } as const

test('both bounds are inclusive to the microsecond', async () => {
  const sandbox = await startSandbox({ records: 400 })
  const all = [...sandbox.expected({ query })]
  const low = all[100]!.imported_at
  const high = all[200]!.imported_at
  const wanted = all.filter((item) => {
    const at = micros(item.imported_at)
    return at >= micros(low) && at <= micros(high)
  })
  const bounded = (gte: string, lte: string) =>
    searchAll(sandbox, { query, filters: { imported_at: { gte, lte } }, order: 'asc', size: 64 })
  expect(await bounded(low, high)).toEqual(wanted)
  const justInside = await bounded(shifted(low, 1n), shifted(high, -1n))
  const edges = wanted.filter((item) => [micros(low), micros(high)].includes(micros(item.imported_at)))
  expect(justInside).toHaveLength(wanted.length - edges.length)
  // Beyond the sixth digit: later than low, so low is out.
  expect(await bounded(shifted(low, 0n, '1'), high)).toHaveLength(
    wanted.filter((item) => micros(item.imported_at) > micros(low)).length,
  )
})

test('records lie exactly on month starts, and expected() gives them to one window', async () => {
  const sandbox = await startSandbox({ records: 1000 })
  const boundary = micros('2024-02-01T00:00:00Z')
  const january = [...sandbox.expected({ query, from: '2024-01-01', until: '2024-02-01' })]
  const february = [...sandbox.expected({ query, from: '2024-02-01', until: '2024-03-01' })]
  expect(january.some((item) => micros(item.imported_at) === boundary)).toBe(false)
  expect(february.filter((item) => micros(item.imported_at) === boundary).length).toBeGreaterThan(1)
  const found = await searchAll(sandbox, {
    query,
    filters: { imported_at: { gte: '2024-01-01T00:00:00Z', lte: '2024-02-01T01:00:00+01:00' } },
    size: 1000,
  })
  const onBoundary = found.filter((item) => micros(item.imported_at) === boundary)
  expect(found.length).toBe(january.length + onBoundary.length)
  expect(onBoundary.length).toBeGreaterThan(1)
})

test('one bound alone, an empty range and a range the wrong way round', async () => {
  const sandbox = await startSandbox({ records: 100 })
  const count = async (imported_at: object) =>
    (await searchAll(sandbox, { query, filters: { imported_at }, size: 1000 })).length
  const before = await count({ lte: '2024-06-30T23:59:59.999999Z' })
  const after = await count({ gte: '2024-07-01' })
  expect(before + after).toBe(100)
  expect(await count({ gte: '2025-06-01', lte: '2025-07-01' })).toBe(0)
  expect(await count({ gte: '2024-07-01', lte: '2024-06-01' })).toBe(0)
  expect(await count({ gte: null })).toBe(100)
})

/** The instant some microseconds later, in UTC; `more` are digits after the sixth. */
function shifted(time: string, by: bigint, more = ''): string {
  const at = micros(time) + by
  const seconds = new Date(Number(at / 1_000_000n) * 1000).toISOString().slice(0, 19)
  return `${seconds}.${String(at % 1_000_000n).padStart(6, '0')}${more}Z`
}

test('gzip is sent to those who accept it, when switched on', async () => {
  const sandbox = await startSandbox({ gzip: true })
  const response = await post(sandbox, { query, size: 100 })
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(((await response.json()) as { items: unknown[] }).items).toHaveLength(100)
  const plain = await post(sandbox, { query }, SEARCH, { 'accept-encoding': 'identity' })
  expect(plain.headers.get('content-encoding')).toBeNull()
})

test('closing ends open requests at once', async () => {
  const sandbox = await startSandbox({ latencyMs: 60_000 })
  const pending = post(sandbox, { query }).catch(() => 'no response')
  await expect.poll(() => sandbox.requests.length).toBe(1)
  await sandbox.close()
  expect(await pending).toBe('no response')
})
