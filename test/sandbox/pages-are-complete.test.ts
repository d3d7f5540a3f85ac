import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DEMO_DOMAINS, type SearchQuery, startSandbox } from '../support/sandbox.ts'
import { micros, page, pages, post, SEARCH, searchAll } from './client.ts'

test.each(['asc', 'desc'] as const)(
  'next leads to every match once, for each kind of query, %s',
  async (order) => {
    const sandbox = await startSandbox({ records: 1500, nastyRate: 0.05 })
    const all = DEMO_DOMAINS.flatMap((fqdn) => [
      ...sandbox.expected({ query: { type: 'domain', fqdn }, include: ['auth_domains'] }),
    ])
    const names = all.map((item) => item.identity_name)
    expect(new Set(all.map((item) => item.id)).size).toBe(6000)
    const local = (name: string) => name.slice(0, name.lastIndexOf('@'))
    const host = (name: string) => name.slice(name.lastIndexOf('@') + 1)
    const common = names.find((name) => /^[a-z]+\.[a-z]+$/.test(local(name)))!
    const nasty = names.find((name) => name.startsWith('say "hello"'))!
    // What each query should find, decided on the JSON alone.
    const queries: [SearchQuery, (item: (typeof all)[number]) => boolean][] = [
      [{ type: 'domain', fqdn: 'quillmere.net' }, (i) => host(i.identity_name).endsWith('quillmere.net')],
      [{ type: 'domain', fqdn: 'Mail.Quillmere.Net' }, (i) => host(i.identity_name) === 'mail.quillmere.net'],
      [{ type: 'domain', fqdn: 'nowhere.example' }, () => false],
      [{ type: 'email', email: common }, (i) => i.identity_name === common],
      [{ type: 'email', email: nasty }, (i) => i.identity_name === nasty],
      [{ type: 'keyword', keyword: local(common) }, (i) => local(i.identity_name) === local(common)],
      [{ type: 'secret', secret: 'lone high \ud83d end' }, (i) => i.hash === 'lone high \ud83d end'],
      [{ type: 'auth_domain', fqdn: 'id.plumwire.net' }, (i) => i.auth_domains!.includes('id.plumwire.net')],
    ]
    for (const [query, matches] of queries) {
      const found = await searchAll(sandbox, { query, order, size: 97 })
      if (order === 'desc') found.reverse()
      const ids = found.map((item) => item.id)
      const wanted = all.filter(matches).map((item) => item.id)
      expect([...ids].sort(), JSON.stringify(query)).toEqual(wanted.sort())
      expect(ids).toEqual([...sandbox.expected({ query })].map((item) => item.id))
      const times = found.map((item) => micros(item.imported_at))
      expect(times.every((time, i) => i === 0 || times[i - 1]! <= time)).toBe(true)
      // A query that finds nothing tests nothing; only the one for an unknown domain may.
      if (query.type !== 'domain') expect(ids.length).toBeGreaterThan(0)
    }
  },
)

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

test('a range finds what lies in it, both bounds inclusive, to the microsecond', async () => {
  const sandbox = await startSandbox({ records: 400 })
  const all = [...sandbox.expected({ query })]
  const times = all.map(({ imported_at }) => micros(imported_at))
  const bound = fc.record({
    at: fc.tuple(fc.constantFrom(...times), fc.constantFrom(-1n, 0n, 1n)).map(([at, by]) => at + by),
    // Beyond the sixth digit: later than it.
    more: fc.constantFrom('', '1'),
    hours: fc.constantFrom(0, 1),
  })
  const either = fc.option(bound, { freq: 4 })
  await fc.assert(
    fc.asyncProperty(either, either, async (low, high) => {
      const wanted = all.filter((_, i) => {
        const isAfter = low === null || times[i]! > low.at || (low.more === '' && times[i] === low.at)
        return isAfter && (high === null || times[i]! <= high.at)
      })
      const [gte, lte] = [low, high].map((each) => (each === null ? null : written(each)))
      const filters = { imported_at: { gte, lte } }
      expect(await searchAll(sandbox, { query, filters, order: 'asc', size: 64 })).toEqual(wanted)
    }),
    { numRuns: 40 },
  )
})

/** An instant, in UTC or at an offset of so many hours, with more digits after the sixth. */
function written({ at, more, hours }: { at: bigint; more: string; hours: number }): string {
  const seconds = new Date(Number(at / 1_000_000n) * 1000 + hours * 3_600_000).toISOString().slice(0, 19)
  return `${seconds}.${String(at % 1_000_000n).padStart(6, '0')}${more}+0${hours}:00`
}

test('records lie exactly on month starts, and expected() gives them to one window', async () => {
  const sandbox = await startSandbox({ records: 1000 })
  const [january, february] = [1, 2].map((month) => {
    const found = sandbox.expected({ query, from: `2024-0${month}-01`, until: `2024-0${month + 1}-01` })
    return [...found].filter((item) => micros(item.imported_at) === micros('2024-02-01T00:00:00Z'))
  })
  expect(january).toEqual([])
  expect(february!.length).toBeGreaterThan(1)
})

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
