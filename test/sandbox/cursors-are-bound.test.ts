import { expect, test } from 'vitest'
import { page, post, SECOND_SEARCH, sandboxWith } from './client.ts'

const asked = {
  query: { type: 'domain', fqdn: 'quillmere.net' },
  filters: { imported_at: { gte: '2024-01-01T00:00:00Z' } },
  size: 50,
  order: 'asc',
  include: ['known_password_id'],
}

test('a cursor is refused with any other parameter changed', async () => {
  const sandbox = await sandboxWith()
  const { next } = await page(sandbox, asked)
  const others = [
    { ...asked, query: { type: 'domain', fqdn: 'tarnhollow.io' } },
    { ...asked, filters: { imported_at: { gte: '2024-01-01T00:00:00.000001Z' } } },
    { ...asked, filters: undefined },
    { ...asked, size: 51 },
    { ...asked, order: 'desc' },
    { ...asked, include: [] },
  ]
  for (const other of others) {
    const response = await post(sandbox, { ...other, from: next })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'INVALID_CURSOR' } })
  }
  expect((await post(sandbox, { ...asked, from: next }, SECOND_SEARCH)).status).toBe(400)
  expect((await post(sandbox, { ...asked, from: 'made-up' })).status).toBe(400)
  expect((await post(sandbox, { ...asked, from: '' })).status).toBe(400)
  expect((await post(sandbox, { ...asked, from: next })).status).toBe(200)
})

test('a cursor goes on after a restart, unless the key or the data changed', async () => {
  const { next } = await page(await sandboxWith({ seed: 7 }), asked)
  const again = await page(await sandboxWith({ seed: 7 }), { ...asked, from: next })
  const own = await sandboxWith({ seed: 7 })
  const expected = own.expected({ query: { type: 'domain', fqdn: 'quillmere.net' }, include: asked.include })
  expect(again.items).toEqual([...expected].slice(50, 100))
  for (const options of [{ seed: 8 }, { seed: 7, cursorKey: 'other' }, { seed: 7, records: 2000 }]) {
    expect((await post(await sandboxWith(options), { ...asked, from: next })).status).toBe(400)
  }
})

test('the same cursor gives the same page again', async () => {
  const sandbox = await sandboxWith()
  const { next } = await page(sandbox, asked)
  const [one, two] = [
    await page(sandbox, { ...asked, from: next }),
    await page(sandbox, { ...asked, from: next }),
  ]
  expect(one).toEqual(two)
})
