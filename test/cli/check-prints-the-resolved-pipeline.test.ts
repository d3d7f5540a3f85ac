import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { newWorkspace } from '../support/workspace.ts'

const BASE = `service:
  base_url: \${SPILLWAY_BASE_URL}
  retries: \${RETRIES:-4}
extract:
  windows: { from: 2024-01-01, until: now, every: month }
`
const FILE = `extends: base.yaml
name: acme
extract:
  domains: [Bücher.example]
  queries:
    - { type: email, email: jane.doe@acme.com }
    - { type: secret, secret_env: LEAKED }
  max_requests: 7
transform: { secret: hmac, identity: hmac }
`

async function checked(...flags: string[]) {
  const here = await newWorkspace({}, {}, { LEAKED: 'correct horse' })
  writeFileSync(join(here.folder, 'base.yaml'), BASE)
  writeFileSync(join(here.folder, 'acme.yaml'), FILE)
  writeFileSync(join(here.folder, 'key'), 'k'.repeat(40), { mode: 0o600 })
  writeFileSync(join(here.folder, 'token'), `${here.env.SPILLWAY_TOKEN}\n`)
  const SPILLWAY_TOKEN_FILE = join(here.folder, 'token')
  const SPILLWAY_MASK_KEY_FILE = join(here.folder, 'key')
  const { cli, env } = here.with({ SPILLWAY_TOKEN: '', SPILLWAY_TOKEN_FILE, SPILLWAY_MASK_KEY_FILE })
  const ended = await cli('check', 'acme.yaml', '--concurrency', '2', ...flags)
  return { ...ended, env, token: here.sandbox.token }
}

it('--resolved prints the pipeline with flags, bases, variables and defaults, and no secret', async () => {
  const { code, stdout, stderr, env, token } = await checked('--resolved')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(parse(stdout)).toMatchObject({
    name: 'acme',
    service: { base_url: env.SPILLWAY_BASE_URL, token_env: 'SPILLWAY_TOKEN', retries: 4, timeout: '60s' },
    extract: {
      domains: ['Bücher.example'],
      queries: [
        { type: 'email', email: 'hidden by transform.identity' },
        { type: 'secret', secret_env: 'LEAKED' },
      ],
      lag: '15m',
      page_size: 'auto',
      concurrency: 2,
      max_requests: 7,
    },
    transform: { secret: 'hmac', mask_key_env: 'SPILLWAY_MASK_KEY' },
    load: { path: expect.stringMatching(/^\/.*output\/acme$/), compression: 'snappy' },
  })
  // Keys without effect here.
  expect(stdout).not.toMatch(/^ +(?:csv|token_url|ids|identifiers|table_snapshots):/m)
  expect(stdout).not.toMatch(/jane|correct horse|kkkk/)
  expect(stdout).not.toContain(token)
  const json = await checked('--resolved', '--json')
  expect(JSON.parse(json.stdout)).toMatchObject({ name: 'acme', extract: { concurrency: 2 } })
})

it('without it, check prints its verdict', async () => {
  const { code, stdout } = await checked()
  expect(code).toBe(0)
  expect(stdout.replaceAll(/ +.*/g, '')).toBe('ok\nok\nok\nok\n')
  const report = JSON.parse((await checked('--json')).stdout)
  expect(report).toMatchObject({ pipeline: 'acme', ok: true })
  const names = ['file', 'environment', 'data set', 'service']
  expect(report.checks).toMatchObject(names.map((name) => ({ name, ok: true })))
})
