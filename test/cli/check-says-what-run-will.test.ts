import { spawnSync } from 'node:child_process'
import all, { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { parse } from 'yaml'
import { serve } from '../extract/support.ts'
import { withDiskFault } from '../fault/disk-fault-here.ts'
import { CLI, exits } from '../support/run-cli.ts'
import { newWorkspace, PIPELINE, type Workspace } from '../support/workspace.ts'
import { trial } from './trial.ts'

const { fsync } = all
afterEach(() => {
  all.fsync = fsync
  syncBuiltinESMExports()
})

async function verdicts(here: Workspace) {
  const check = await here.call('check')
  const run = await here.call('run')
  return { check, run, searches: here.searches() }
}

it('a disk without room for a page is reported by both, before anything is paid', async () => {
  const here = await trial()
  const fault = { DISK_FAULT_ROOT: here.folder, DISK_FAULT: 'room:1000000' }
  const { result } = await withDiskFault(fault, () => verdicts(here))
  expect([result.check.code, result.run.code]).toEqual([1, 1])
  expect(result.check.stdout).toMatch(/^no {2}data set +The disk has room for 1\.0 MB/m)
  expect(result.searches).toEqual([])
})

it('so is a file system that cannot fsync a folder', async () => {
  const here = await trial()
  all.fsync = ((_file: number, done: (error: Error) => void) =>
    done(Object.assign(new Error('EINVAL'), { code: 'EINVAL' }))) as typeof all.fsync
  syncBuiltinESMExports()
  const { check, run, searches } = await verdicts(here)
  expect([check.code, run.code]).toEqual([1, 1])
  expect(check.stdout).toMatch(/^no {2}data set +The file system refuses \(EINVAL\)/m)
  expect(searches).toEqual([])
})

it('a path that is a file, or lies below one, is exit 2, and no request is sent', async () => {
  const { sandbox, folder, write, call } = await newWorkspace({})
  writeFileSync(join(folder, 'taken'), 'mine')
  mkdirSync(join(folder, 'half'))
  writeFileSync(join(folder, 'half/_state'), 'mine')
  for (const path of ['taken', 'taken/below', 'taken/below/that', 'half']) {
    await write({ load: { path } })
    for (const [command = '', ...flags] of [['run'], ['run', '--fresh', '--yes'], ['plan']]) {
      const said = /A part of the path is a file, not a folder.*, pipeline\.yaml:\d+:5\)/s
      await exits(2, call(command, ...flags), said)
    }
  }
  expect(readdirSync(join(folder, 'half'))).toEqual(['_state'])
  expect(sandbox.requests).toEqual([])
})

it.skipIf(process.platform === 'win32')('so is a folder without write permission', async () => {
  const { sandbox, folder, env: access } = await trial({ load: { path: 'closed/out' } })
  mkdirSync(join(folder, 'closed'))
  chmodSync(join(folder, 'closed'), 0o555)
  // Root may write anywhere, but for its capabilities.
  const dropped = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
  const [command = '', ...args] = [...dropped, process.execPath, CLI, 'run', PIPELINE]
  const env = { PATH: process.env.PATH ?? '', ...access }
  const { status, stderr } = spawnSync(command, args, { cwd: folder, env, encoding: 'utf8' })
  expect([status, stderr]).toEqual([2, expect.stringContaining('Writing or reading is not permitted')])
  expect(sandbox.requests).toEqual([])
})

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
  const files = {
    SPILLWAY_TOKEN_FILE: join(here.folder, 'token'),
    SPILLWAY_MASK_KEY_FILE: join(here.folder, 'key'),
  }
  const { cli, env } = here.with({ SPILLWAY_TOKEN: '', ...files })
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

const check = async (url: string) =>
  (await trial({}, {}, { SPILLWAY_BASE_URL: `${url}/firework` })).call('check')

const linesOf = (requests: readonly { readonly method: string; readonly url: string }[]) =>
  requests.map(({ method, url }) => `${method} ${url}`)

it('the token is tested where the service has a token test', async () => {
  const here = await trial()
  const good = await here.call('check')
  expect(good).toMatchObject({ code: 0, stderr: '' })
  expect(good.stdout).toContain('the token is accepted')
  expect(here.sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /tokens/test',
    'GET /firework/v4/credentials/global/_search',
  ])
  expect(good.stdout).toContain('the search path exists')
  const bad = await exits(3, here.with({ SPILLWAY_TOKEN: 'another-one' }).call('check'))
  expect(bad.stdout).toMatch(/^no {2}service/m)
  expect(bad.stdout + bad.stderr).not.toContain('another-one')
})

it.each([
  [404, '{}'],
  [200, '<!doctype html>'],
])('a service that responds %i %s has no token test, which is no error', async (status, body) => {
  const { url, received } = await serve((request, response) => {
    if (request.url === '/tokens/test') response.writeHead(status, { location: '/' }).end(body)
    else response.writeHead(405).end('{}')
  })
  const { code, stdout, stderr } = await check(url)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`the token is not tested: there is no test at ${url}/tokens/test`)
  expect(linesOf(received)).toEqual(['GET /tokens/test', 'GET /firework/v4/credentials/global/_search'])
})

it.each([
  [401, 'yes', '{}'],
  [404, 'no', '{}'],
  [302, 'redirect', '{}'],
  [503, 'unknown', '{}'],
  [200, 'no', '<!doctype html>'],
] as const)('a search path that responds %i to a GET exists: %s %s', async (status, found, body) => {
  const { url, received } = await serve((request, response) => {
    if (request.url === '/tokens/test') response.end('{}')
    else response.writeHead(status).end(body)
  })
  const { code, stdout, stderr } = await check(url)
  expect(linesOf(received).at(-1)).toMatch(/^GET .*_search$/)
  expect(code).toBe({ no: 2, redirect: 1, yes: 0, unknown: 0 }[found])
  expect(stdout.includes('the search path exists')).toBe(found === 'yes')
  expect(stdout.includes('the search path is not tested')).toBe(found === 'unknown')
  expect(stderr.includes('service.base_url')).toBe(found === 'no' || found === 'redirect')
})

it('a service that fails gets one request, and no export is announced', async () => {
  const { url, received } = await serve((_request, response) => response.writeHead(503).end('{}'))
  for (const base of [url, 'http://127.0.0.1:1']) {
    const { stdout, stderr } = await exits(1, check(base), base === url ? '503' : 'ECONNREFUSED')
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(stdout + stderr).not.toMatch(/export|resume|requests (go on|wait)|trying again/)
  }
  expect(received).toHaveLength(1)
})
