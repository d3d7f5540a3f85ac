import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace, temporaryFolder } from './support/workspace.ts'

const EXTRACT = { domains: ['scatterholt.com'], page_size: 10, concurrency: 2 }
const KEY = 'an-api-key-that-nobody-may-see'
const BY_KEY = { api_key_env: 'SPILLWAY_API_KEY', token_url: '/tokens/generate', tenant_id: 7 }

it('an API key is exchanged for tokens, which are renewed when they end in the middle of the run', async () => {
  const here = await newWorkspace(
    { service: { ...BY_KEY, token_lifetime: '1s' }, extract: EXTRACT },
    { apiKey: KEY, tokenLifetimeMs: 1000, latencyMs: 120 },
    { SPILLWAY_API_KEY: KEY },
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

it('tokens that expire early are renewed, from a key in a file', async () => {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'key'), `${KEY}\n`)
  const here = await newWorkspace(
    { service: BY_KEY, extract: { ...EXTRACT, concurrency: 1 } },
    { apiKey: KEY, faults: [{ kind: 'revoke-tokens', requests: [3, 9] }] },
    { SPILLWAY_API_KEY_FILE: join(folder, 'key') },
  )
  const { summary } = await exits(0, here.run())
  await here.expectRows(EXTRACT.domains)
  expect(here.sandbox.requests.filter(({ kind }) => kind === 'tokens')).toHaveLength(3)
  expect(summary).toMatchObject({ requests: 17, retries: 2 })
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

it('after a 429 no request is sent before Retry-After is over', async () => {
  const here = await newWorkspace(
    {
      extract: {
        ...EXTRACT,
        windows: { from: '2024-01-01', until: '2024-09-01', every: 'month' },
        concurrency: 4,
      },
    },
    {
      latencyMs: 5,
      faults: [{ kind: 'status', status: 429, code: 'RATELIMIT_REACHED', retryAfter: '2', requests: [6] }],
    },
  )
  const { summary } = await exits(0, here.run())
  expect(summary.retries).toBe(1)
  const refused = here.searches()[5]!
  // At most the three other chains had a request in flight when the response came.
  const during = here.searches().filter(({ at }) => at > refused.at && at < refused.at + 1900)
  expect(during.length).toBeLessThanOrEqual(3)
  await here.expectRows(EXTRACT.domains, { from: '2024-01-01', until: '2024-09-01' })
})

it('retries are bounded: `retries: 1` is two requests, and then the partition has failed', async () => {
  const here = await newWorkspace(
    { service: { retries: 1 }, extract: EXTRACT },
    { faults: [{ kind: 'html' }] },
  )
  const { code, summary } = await here.run()
  expect(code).toBe(1)
  expect(summary).toMatchObject({ status: 'failed', requests: 2, retries: 1, partitions: { failed: 1 } })
  expect(here.searches()).toHaveLength(2)
})

it('`check` costs no search', async () => {
  const here = await newWorkspace({ service: { token_test_url: '/tokens/test' }, extract: EXTRACT })
  await exits(0, here.cli('check', 'pipeline.yaml'))
  // A GET tells whether the path exists, and costs nothing.
  expect(here.sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /tokens/test',
    'GET /firework/v4/credentials/global/_search',
  ])
  const bad = await newWorkspace(
    { service: { token_test_url: '/tokens/test' }, extract: EXTRACT },
    {},
    { SPILLWAY_TOKEN: 'no-token-at-all' },
  )
  const refused = await bad.cli('check', 'pipeline.yaml')
  expect(refused.code).toBe(3)
  expect(refused.stdout + refused.stderr).not.toContain('no-token-at-all')
})
