import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { some } from '../support/thorough.ts'
import { accessTo, sandboxWith, spillway, trial } from './spillway.ts'

/** Three months of a domain, exported. @param extract what else is searched for */
async function exported(extract = '') {
  const { sandbox, folder, file, env } = await trial({ extract, rest: 'load: { path: out }' })
  const call = (...args: string[]) => spillway(args, folder, { ...env, LEAKED: 'hunter2-of-the-year' })
  /** Without any variable that only requests need. */
  const offline = (...args: string[]) => spillway(args, folder, {})
  const change = (from: string, to: string): void => {
    const path = join(folder, file)
    const text = readFileSync(path, 'utf8')
    expect(text).toContain(from)
    writeFileSync(path, text.replace(from, to))
  }
  const { code, stderr } = await call('run', file)
  expect(code, stderr).toBe(0)
  return { folder, file, call, offline, change, sandbox }
}

const READERS = [
  ['status'],
  ['verify', '--complete'],
  ['query', 'SELECT count(*) FROM credentials'],
  ['ddl', '--dialect', 'snowflake'],
  ['load', '--to', 'duckdb:leaks.db'],
  ['summary'],
  ['prune', '--older-than', '90y', '--dry-run'],
  ['tables'],
]

it('no command that reads a data set needs more than its path: no valid file, and no variable for requests', async () => {
  const { folder, file, call, offline, change, sandbox } = await exported(
    '  queries: [{ type: secret, secret_env: LEAKED }]',
  )
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  writeFileSync(join(folder, 'pub.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  const commands = [
    ...READERS,
    ['sign', '--key', 'key.pem'],
    ['verify', '--signature', '--key', 'pub.pem'],
    ['evidence', '--key', 'pub.pem', '--output', 'acme.tar'],
  ]
  const areCarriedOutFrom = async (from: string): Promise<void> => {
    for (const [command, ...rest] of commands) {
      const { code, stderr } = await offline(command!, from, ...rest)
      expect([command, from, code, stderr]).toEqual([command, from, 0, ''])
    }
  }
  await areCarriedOutFrom('out')
  await areCarriedOutFrom(file)
  expect(existsSync(join(folder, 'acme.tar'))).toBe(true)
  expect(readFileSync(join(folder, 'out/_report.html'), 'utf8')).toContain(new URL(sandbox.baseUrl).host)
  expect(JSON.parse((await offline('plan', file, '--json')).stdout).partitions).toMatchObject({ done: 6 })
  for (const command of ['run', 'check']) {
    const { code, stderr } = await offline(command, file)
    expect([command, code, stderr]).toEqual([
      command,
      2,
      expect.stringContaining('SPILLWAY_BASE_URL is not set'),
    ])
  }
  change('domains:', 'dommains:')
  await areCarriedOutFrom(file)
  expect((await call('run', file)).code).toBe(2)
})

it('a path without a data set is said to be none, whatever the command', async () => {
  const folder = scratchFolder()
  mkdirSync(join(folder, 'empty'))
  for (const [command, ...rest] of READERS) {
    const { code, stderr } = await spillway([command!, 'empty', ...rest], folder, {})
    expect([command, code, stderr]).toEqual([command, 2, expect.stringContaining('There is no data set')])
  }
  expect(existsSync(join(folder, 'empty/_state'))).toBe(false)
})

const changes = [
  ['other masking', 'load: { path: out }', 'transform: { secret: partial }\nload: { path: out }'],
  ['other columns', 'load: { path: out }', 'transform: { columns: [id, domain] }\nload: { path: out }'],
  ['another format', '{ path: out }', '{ path: out, format: csv }'],
  ['another name', 'name: trial', 'name: other'],
  ['another query', '[scatterholt.com]', '[scatterholt.com, quillmere.net]'],
] as const
it.each(some(changes, 2))(
  'a file with %s does not damage what is there: it is said in one line, and run refuses',
  async (what, from, to) => {
    const { file, call, change } = await exported()
    change(from, to)
    for (const args of [['verify'], ['query', 'SELECT hash FROM credentials LIMIT 1'], ['status']]) {
      const { code, stderr } = await call(args[0]!, file, ...args.slice(1))
      expect([args[0], code]).toEqual([args[0], 0])
      expect(stderr.match(/the file and the data set differ/g)).toHaveLength(1)
    }
    for (const command of ['plan', 'run']) {
      const { code } = await call(command, file)
      expect([command, code]).toEqual([command, what === 'another query' ? 0 : 2])
    }
  },
)

it('reports under secret: hmac need no key', async () => {
  const sandbox = await sandboxWith()
  const folder = scratchFolder()
  const lines = [
    'name: trial',
    `service: { base_url: "$\{SPILLWAY_BASE_URL}" }`,
    'extract: { resource: reports, all: true }',
    'transform: { secret: hmac }',
    'load: { path: out }',
  ]
  writeFileSync(join(folder, 'trial.yaml'), lines.join('\n'))
  for (const command of ['plan', 'run', 'verify']) {
    const { code, stderr } = await spillway([command, 'trial.yaml'], folder, accessTo(sandbox))
    expect([command, code], stderr).toEqual([command, 0])
  }
})

it('--fresh does not go with flags that narrow the run', async () => {
  const { file, call, folder } = await exported()
  for (const flags of [
    ['--domain', 'scatterholt.com'],
    ['--from', '2024-02-01'],
    ['--until', '2024-02-01'],
  ]) {
    const { code, stderr } = await call('run', file, '--fresh', '--yes', ...flags)
    expect([code, stderr]).toEqual([2, expect.stringContaining('--fresh and')])
  }
  expect(existsSync(join(folder, 'out/_SUCCESS'))).toBe(true)
})

it('after a damaged checkpoint, verify names what helps', async () => {
  const { file, call, folder } = await exported()
  writeFileSync(join(folder, 'out/_state/checkpoint.jsonl'), '')
  const { code, stdout } = await call('verify', file)
  expect(code).toBe(1)
  expect(stdout).toContain('restore _state from a backup, or start over with `run --fresh`')
  expect(stdout).not.toContain('verify --fix')
})

it('hidden files that no reader takes are named and harm nothing; one that ends like a shard is an error', async () => {
  const { file, call, folder } = await exported()
  writeFileSync(join(folder, 'out/credentials/.DS_Store'), 'x')
  const fine = await call('verify', file)
  expect([fine.code, fine.stdout]).toEqual([
    0,
    expect.stringContaining('1 hidden file, which no reader takes: credentials/.DS_Store'),
  ])
  writeFileSync(join(folder, 'out/credentials/._part-00000.parquet'), 'x')
  const { code, stdout } = await call('verify', file)
  expect([code, stdout]).toEqual([1, expect.stringContaining('._part-00000.parquet  is not on record')])
})

it('one file given twice makes two runs', async () => {
  const { folder, file, call } = await trial({ rest: 'load: { path: out }' })
  expect((await call('run', file, file)).code).toBe(0)
  expect(JSON.parse(readFileSync(join(folder, 'out/_manifest.json'), 'utf8')).runs).toHaveLength(2)
})

it('what run proposes reads the data set that it wrote', async () => {
  const { file, call, folder } = await exported()
  const { stdout } = await call('run', file, '--output', 'elsewhere', '--domain', 'scatterholt.com')
  expect(stdout).toMatch(/verify elsewhere$/m)
  expect((await call('verify', 'elsewhere')).code).toBe(0)
  expect(existsSync(join(folder, 'elsewhere/_SUCCESS'))).toBe(true)
})
