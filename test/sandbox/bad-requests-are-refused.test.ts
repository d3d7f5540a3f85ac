import { expect, test } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { get, post, SEARCH } from './client.ts'

const query = { type: 'domain', fqdn: 'quillmere.net' }

test('422 says where the request is wrong, and how; it costs no search', async () => {
  const sandbox = await startSandbox({ records: 1 })
  const wrong: readonly (readonly [unknown, where: string, type: string])[] = [
    [{}, 'query', 'invalid_type'],
    [{ query, pages: 3 }, 'pages', 'unrecognized_keys'],
    [{ query: { type: 'email', fqdn: 'a.b' } }, 'query.email', 'invalid_type'],
    [{ query: { type: 'domain', fqdn: 'a b' } }, 'query.fqdn', 'invalid_format'],
    [{ query, size: 10_001 }, 'size', 'too_big'],
    [{ query, order: 'up' }, 'order', 'invalid_value'],
    [{ query, filters: { imported_at: { gte: '2024-02-30' } } }, 'filters.imported_at.gte', 'custom'],
    [{ query, filters: { id: 1 } }, 'filters.id', 'unrecognized_keys'],
    ['{"query":', '', 'json_invalid'],
  ]
  for (const [body, where, type] of wrong) {
    const response = await post(sandbox, body)
    expect(response.status, where).toBe(422)
    const loc = ['body', ...where.split('.')].filter((part) => part !== '')
    const { detail } = (await response.json()) as { detail: unknown[] }
    expect(detail[0]).toMatchObject({ loc, type, msg: expect.stringMatching(/./) })
    expect(response.headers.get('x-flare-global-searches-remaining')).toBe('1000000')
  }
})

test('422 responses never repeat a secret', async () => {
  const sandbox = await startSandbox({ records: 1 })
  const secret = 'do-not-repeat-me'
  const bodies = [
    { query: { type: 'secret', secret, extra: 1 } },
    { query: { type: 'secret', secret: { secret } } },
    { query: { type: 'secret', secret: [secret] } },
    { query: { type: secret, secret } },
    { query: { type: 'secret', secret }, size: secret, order: secret, include: [secret], from: 5 },
    { query: { type: 'secret', secret }, filters: { imported_at: { gte: secret } } },
    `{"query":{"type":"secret","secret":"${secret}"`,
  ]
  for (const body of bodies) {
    const response = await post(sandbox, body)
    expect(response.status).toBe(422)
    expect(await response.text()).not.toContain(secret)
  }
})

test('401 comes before any error about the body', async () => {
  const sandbox = await startSandbox({ records: 1 })
  for (const authorization of ['Bearer wrong', `Basic ${sandbox.token}`, sandbox.token]) {
    for (const body of [{ query }, {}, 'no json']) {
      const response = await post(sandbox, body, SEARCH, { authorization })
      expect(response.status).toBe(401)
      expect(await response.json()).toMatchObject({ error: { code: 'UNAUTHORIZED' } })
    }
  }
})

test('unknown paths, wrong methods and other content types', async () => {
  const sandbox = await startSandbox({ records: 1 })
  expect((await get(sandbox, '/v4/credentials/global/_search')).status).toBe(404)
  expect((await get(sandbox, SEARCH)).status).toBe(405)
  expect((await post(sandbox, { query }, SEARCH, { 'content-type': 'text/plain' })).status).toBe(422)
  expect((await post(sandbox, 'x'.repeat(1_100_000))).status).toBe(413)
})

test('the log holds bodies and statuses, and no credentials', async () => {
  const sandbox = await startSandbox({ records: 5 })
  await post(sandbox, { query })
  await get(sandbox, '/tokens/test')
  expect(sandbox.requests).toMatchObject([
    { number: 1, kind: 'search', ordinal: 1, method: 'POST', path: SEARCH, status: 200, items: 5 },
    { number: 2, kind: 'tokens', ordinal: 1, method: 'GET', path: '/tokens/test', status: 200 },
  ])
  expect(sandbox.requests[0]?.body).toEqual({ query })
  expect(JSON.stringify(sandbox.requests)).not.toContain(sandbox.token)
})
