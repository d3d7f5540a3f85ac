import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace, temporaryFolder } from './support/workspace.ts'

const EXTRACT = { domains: ['scatterholt.com'], page_size: 10, concurrency: 2 }
const KEY = 'an-api-key-that-nobody-may-see'
const BY_KEY = { api_key_env: 'SPILLWAY_API_KEY', token_url: '/tokens/generate', tenant_id: 7 }

it('an API key from a file is exchanged for tokens, which are renewed when they end in the middle of the run', async () => {
  const file = join(temporaryFolder(), 'key')
  await writeFile(file, `${KEY}\n`)
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
