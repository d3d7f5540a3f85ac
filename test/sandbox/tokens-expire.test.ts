import { expect, test } from 'vitest'
import { type Sandbox, startSandbox } from '../support/sandbox.ts'
import { get, post, SEARCH } from './client.ts'

const query = { type: 'domain', fqdn: 'quillmere.net' }

function exchange(sandbox: Sandbox, key: string, body?: unknown): Promise<Response> {
  return fetch(`${sandbox.origin}/tokens/generate`, {
    method: 'POST',
    headers: { authorization: key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

test('an API key is exchanged for a token that lives as long as set', async () => {
  let now = 1_700_000_000_000
  const sandbox = await startSandbox({ tokenLifetimeMs: 5000, now: () => now })
  const response = await exchange(sandbox, sandbox.apiKey)
  expect(response.status).toBe(200)
  const { token, refresh_token_exp } = (await response.json()) as { token: string; refresh_token_exp: number }
  expect(refresh_token_exp).toBe(1_700_000_005)
  const authorization = `Bearer ${token}`
  expect((await post(sandbox, { query }, SEARCH, { authorization })).status).toBe(200)
  now += 4999
  expect((await post(sandbox, { query }, SEARCH, { authorization })).status).toBe(200)
  now += 1
  expect((await post(sandbox, { query }, SEARCH, { authorization })).status).toBe(401)
  expect((await post(sandbox, { query })).status).toBe(401)
})

test('the ready token lives for ever and exchanged ones an hour, unless set', async () => {
  let now = 0
  const sandbox = await startSandbox({ now: () => now, token: 'ready', apiKey: 'key' })
  const exchanged = (await (await exchange(sandbox, 'key', { tenant_id: 42 })).json()) as { token: string }
  expect(exchanged).toMatchObject({ refresh_token_exp: 3600 })
  expect(await (await get(sandbox, '/tokens/test')).json()).toMatchObject({
    tenant_id: 42,
    organization_id: 1,
  })
  now = 3_600_000
  expect((await get(sandbox, '/tokens/test')).status).toBe(200)
  const old = await post(sandbox, { query }, SEARCH, { authorization: `Bearer ${exchanged.token}` })
  expect(old.status).toBe(401)
})

test('a wrong key, a key with Bearer and a wrong body are refused', async () => {
  const sandbox = await startSandbox()
  expect((await exchange(sandbox, 'wrong')).status).toBe(401)
  expect((await exchange(sandbox, `Bearer ${sandbox.apiKey}`)).status).toBe(401)
  expect((await exchange(sandbox, sandbox.apiKey, { tenant_id: 'one' })).status).toBe(422)
  expect((await exchange(sandbox, sandbox.apiKey, { tenant: 1 })).status).toBe(422)
})
