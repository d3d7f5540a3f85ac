import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { credential, startService } from '../fault/hostile-service.ts'
import { readParquet } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { newWorkspace, temporaryFolder } from '../support/workspace.ts'

const EXTRACT = { domains: ['scatterholt.com'], page_size: 10, concurrency: 2 }
const KEY = 'an-api-key-that-nobody-may-see'
const BY_KEY = { api_key_env: 'SPILLWAY_API_KEY', token_url: '/tokens/generate', tenant_id: 7 }

it('an API key from a file is exchanged for tokens, which are renewed when they end in the middle of the run', async () => {
  const file = join(temporaryFolder(), 'key')
  writeFileSync(file, `${KEY}\n`)
  const here = await newWorkspace(
    { service: { ...BY_KEY, token_lifetime: '3s' }, extract: EXTRACT },
    { apiKey: KEY, tokenLifetimeMs: 3000, latencyMs: 500 },
    { SPILLWAY_API_KEY_FILE: file },
  )
  const { stderr, stdout, summary } = await exits(0, here.run('--log-level', 'trace'))
  await here.expectRows(EXTRACT.domains)
  const exchanges = here.sandbox.requests.filter(({ kind }) => kind === 'tokens')
  expect(exchanges.length).toBeGreaterThan(1)
  expect(new Set(exchanges.map(({ body }) => JSON.stringify(body)))).toEqual(new Set(['{"tenant_id":7}']))
  // Token exchanges cost no search and do not count as requests.
  expect(summary.requests).toBe(here.searches().length)
  expect(stdout + stderr).not.toContain(KEY)
})

it('a token that is refused is read again from its file; if that holds no other, the run ends with exit 3, and a later one resumes', async () => {
  const file = join(temporaryFolder(), 'token')
  writeFileSync(file, 'first-token\n')
  let valid = 'first-token'
  const renew = (token: string): void => {
    valid = token
    writeFileSync(file, `${token}\n`)
  }
  const service = await startService(({ number, headers, body, json }) => {
    if (number === 3) renew('second-token')
    if (number === 5) valid = 'third-token'
    if (headers.authorization !== `Bearer ${valid}`) return json({}, 401)
    const page = Number(body.from ?? 0)
    json({ items: [credential(page)], next: page < 6 ? String(page + 1) : null })
  })
  const env = { SPILLWAY_BASE_URL: service.baseUrl, SPILLWAY_TOKEN: '', SPILLWAY_TOKEN_FILE: file }
  const here = await newWorkspace({ extract: { ...EXTRACT, concurrency: 1 } }, {}, env)
  const refused = await exits(3, here.run())
  expect(refused.stderr).toContain('SPILLWAY_TOKEN')
  expect(service.requests).toHaveLength(5)
  renew('fourth-token')
  expect((await exits(0, here.run())).summary.rows).toBe(4)
  const ids = (await readParquet(here.output)).map(({ id }) => Number(id))
  expect(ids.sort()).toEqual([0, 1, 2, 3, 4, 5, 6])
})

it('a key that is refused is exit 3, at once', async () => {
  const here = await newWorkspace(
    { service: BY_KEY, extract: EXTRACT },
    { apiKey: KEY },
    { SPILLWAY_API_KEY: 'another-key-of-no-use' },
  )
  const { code, stderr, stdout } = await here.run()
  expect(code).toBe(3)
  expect(stdout + stderr).not.toContain('another-key')
  expect(here.searches()).toHaveLength(0)
})
