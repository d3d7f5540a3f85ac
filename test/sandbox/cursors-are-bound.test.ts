import { expect, test } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { get, page, post, SECOND_SEARCH, type SearchPage } from './client.ts'

const search = {
  query: { type: 'domain', fqdn: 'quillmere.net' },
  filters: { imported_at: { gte: '2024-01-01T00:00:00Z' } },
  size: 50,
  order: 'asc',
  include: ['known_password_id'],
}

test('a cursor is refused with any other parameter changed', async () => {
  const sandbox = await startSandbox()
  const { next } = await page(sandbox, search)
  const others = [
    { ...search, query: { type: 'domain', fqdn: 'tarnhollow.io' } },
    { ...search, filters: { imported_at: { gte: '2024-01-01T00:00:00.000001Z' } } },
    { ...search, filters: undefined },
    { ...search, size: 51 },
    { ...search, order: 'desc' },
    { ...search, include: [] },
  ]
  for (const other of others) {
    const response = await post(sandbox, { ...other, from: next })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'INVALID_CURSOR' } })
  }
  expect((await post(sandbox, { ...search, from: next }, SECOND_SEARCH)).status).toBe(400)
  expect((await post(sandbox, { ...search, from: 'made-up' })).status).toBe(400)
  expect((await post(sandbox, { ...search, from: '' })).status).toBe(400)
  expect((await post(sandbox, { ...search, from: next })).status).toBe(200)
})

test('a cursor stays valid after a restart, unless the key or the data changed', async () => {
  const { next } = await page(await startSandbox({ seed: 7 }), search)
  const again = await page(await startSandbox({ seed: 7 }), { ...search, from: next })
  const own = await startSandbox({ seed: 7 })
  const expected = own.expected({ query: { type: 'domain', fqdn: 'quillmere.net' }, include: search.include })
  expect(again.items).toEqual([...expected].slice(50, 100))
  for (const options of [{ seed: 8 }, { seed: 7, cursorKey: 'other' }, { seed: 7, records: 2000 }])
    expect((await post(await startSandbox(options), { ...search, from: next })).status).toBe(400)
})

test('the cursors of feeds are accepted by the clock of the machine, which counts parts of milliseconds', async () => {
  const sandbox = await startSandbox()
  for (const path of ['/firework/v2/me/feed/credentials', '/firework/v3/identifiers/1/feed/credentials']) {
    const first = (await (await get(sandbox, `${path}?size=50`)).json()) as SearchPage
    const response = await get(sandbox, `${path}?size=50&from=${first.next}`)
    expect(response.status).toBe(200)
    const second = (await response.json()) as SearchPage
    expect(second.items).toHaveLength(50)
    expect(second.items[0]).not.toEqual(first.items[0])
  }
})
