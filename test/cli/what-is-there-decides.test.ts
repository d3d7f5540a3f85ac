import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { systemClock } from '../../src/core/index.ts'
import { takeLock } from '../../src/state/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { treeHashes } from '../fault/support.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, PIPELINE, type PipelineParts } from '../support/workspace.ts'
import { threeMonths, trial } from './trial.ts'

const PARTS: PipelineParts = { transform: { secret: 'hmac', identity: 'hmac' } }
const KEYS = { SPILLWAY_MASK_KEY: 'k'.repeat(32), LEAKED: 'hunter2-of-the-year' }

/** Three months of a domain, exported. @param queries what else is searched for */
async function exported(queries: readonly object[] = []) {
  const here = await trial({ ...PARTS, extract: { queries } }, {}, KEYS)
  await exits(0, here.call('run'))
  return here
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

it('no command that reads a data set needs more than its path: no valid file, and no variable for requests or masks', async () => {
  const here = await exported([{ type: 'secret', secret_env: 'LEAKED' }])
  const { folder, output, sandbox } = here
  /** Without any variable. */
  const offline = (...args: string[]) => inThisProcess(args, folder, {})
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
  await areCarriedOutFrom(PIPELINE)
  expect(existsSync(join(folder, 'acme.tar'))).toBe(true)
  expect(readFileSync(join(output, '_report.html'), 'utf8')).toContain(new URL(sandbox.baseUrl).host)
  const SPILLWAY_MASK_KEY = 'another'.repeat(8)
  await exits(0, here.with({ SPILLWAY_MASK_KEY }).call('verify', '--complete'))
  for (const command of ['run', 'check']) {
    const { code, stderr } = await offline(command, PIPELINE)
    expect([command, code, stderr]).toEqual([
      command,
      2,
      expect.stringContaining('SPILLWAY_BASE_URL is not set'),
    ])
  }
  await here.write({ ...PARTS, extract: { dommains: ['scatterholt.com'] } })
  await areCarriedOutFrom(PIPELINE)
  expect((await here.call('run')).code).toBe(2)
})

it('a path without a data set is said to be none, whatever the command', async () => {
  const folder = scratchFolder()
  mkdirSync(join(folder, 'empty'))
  for (const [command, ...rest] of READERS) {
    const { code, stderr } = await inThisProcess([command!, 'empty', ...rest], folder, {})
    expect([command, code, stderr]).toEqual([command, 2, expect.stringContaining('There is no data set')])
  }
  expect(existsSync(join(folder, 'empty/_state'))).toBe(false)
})

const changes: readonly (readonly [what: string, changed: PipelineParts])[] = [
  ['other masking', { transform: { ...PARTS.transform, secret: 'partial' } }],
  ['other columns', { transform: { ...PARTS.transform, columns: ['id', 'domain'] } }],
  ['another format', { load: { format: 'csv' } }],
  ['another name', { name: 'other' }],
  ['another query', { extract: { domains: ['scatterholt.com', 'quillmere.net'] } }],
]
// Every setting that must not change is in `test/state/settings-and-manifest`.
it.each(some(changes, 2))(
  'a file with %s does not damage what is there: it is said in one line, and run refuses and changes nothing',
  async (what, changed) => {
    const here = await exported()
    const [before, sent] = [await treeHashes(here.output), here.sandbox.requests.length]
    await here.write(threeMonths({ ...PARTS, ...changed }))
    for (const args of [['verify'], ['query', 'SELECT hash FROM credentials LIMIT 1'], ['status']]) {
      const { stderr } = await exits(0, here.call(args[0]!, ...args.slice(1)))
      expect(stderr.match(/the file and the data set differ/g)).toHaveLength(1)
    }
    const isMore = what === 'another query'
    expect((await here.call('plan')).code).toBe(isMore ? 0 : 2)
    const run = await here.call('run')
    expect([run.code, /--fresh/.test(run.stderr)]).toEqual(isMore ? [0, false] : [2, true])
    if (isMore) return
    expect(here.sandbox.requests).toHaveLength(sent)
    expect(await treeHashes(here.output)).toEqual(before)
  },
)

it('reports under secret: hmac need no key', async () => {
  const here = await newWorkspace({
    extract: { resource: 'reports', all: true },
    transform: { secret: 'hmac' },
  })
  for (const command of ['plan', 'run', 'verify']) await exits(0, here.call(command))
})

it('--fresh does not go with flags that narrow the run', async () => {
  const here = await exported()
  for (const flags of [
    ['--domain', 'scatterholt.com'],
    ['--from', '2024-02-01'],
    ['--until', '2024-02-01'],
  ]) {
    await exits(2, here.call('run', '--fresh', '--yes', ...flags), '--fresh and')
  }
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
})

it('after a damaged checkpoint, verify names what helps', async () => {
  const here = await exported()
  writeFileSync(join(here.output, '_state/checkpoint.jsonl'), '')
  const { stdout } = await exits(1, here.call('verify'))
  expect(stdout).toContain('restore _state from a backup, or remove _state/checkpoint.jsonl')
  expect(stdout).not.toContain('--redo')
})

it('a command that changes a data set is refused with exit 5 while a run has it locked, and changes nothing', async () => {
  const here = await exported()
  writeFileSync(join(here.folder, 'people.txt'), 'somebody@scatterholt.com\n')
  const KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })
  writeFileSync(join(here.folder, 'key.pem'), KEY, { mode: 0o600 })
  const stop = new AbortController().signal
  const lock = await takeLock(storeAt(here.output), {
    clock: systemClock,
    stop,
    fresh: false,
    warn: () => {},
  })
  /** Without the heartbeat of the lock. */
  const files = async () =>
    [...(await treeHashes(here.output))].filter(([path]) => !path.startsWith('_state/lock'))
  const before = await files()
  for (const [command, ...flags] of CHANGES) {
    const { code, stderr } = await here.call(command!, ...flags)
    expect([command, code, stderr]).toEqual([command, 5, expect.stringContaining('Another run holds')])
  }
  expect(await files()).toEqual(before)
  await lock.release()
  for (const [command, ...flags] of CHANGES) await exits(0, here.call(command!, ...flags))
})

const CHANGES = [
  ['run'],
  ['sign', '--key', 'key.pem'],
  ['prune', '--older-than', '1d', '--yes'],
  ['forget', '--identities', 'people.txt', '--yes'],
]

it('hidden files that no reader takes are named and harm nothing; one that ends like a shard is an error', async () => {
  const here = await exported()
  writeFileSync(join(here.output, 'credentials/.DS_Store'), 'x')
  const fine = await here.call('verify')
  expect([fine.code, fine.stdout]).toEqual([
    0,
    expect.stringContaining('1 hidden file, which no reader takes: credentials/.DS_Store'),
  ])
  writeFileSync(join(here.output, 'credentials/._part-00000.parquet'), 'x')
  const { code, stdout } = await here.call('verify')
  expect([code, stdout]).toEqual([1, expect.stringContaining('._part-00000.parquet  is not in the manifest')])
})

it('one file given twice makes two runs', async () => {
  const here = await trial()
  await exits(0, here.cli('run', PIPELINE, PIPELINE))
  expect((await here.manifest()).runs).toHaveLength(2)
})

it('what run proposes reads the data set that it wrote', async () => {
  const here = await exported()
  const { stdout } = await here.call('run', '--output', 'elsewhere', '--domain', 'scatterholt.com')
  expect(stdout).toMatch(/verify elsewhere$/m)
  await exits(0, here.cli('verify', 'elsewhere'))
  expect(existsSync(join(here.folder, 'elsewhere/_SUCCESS'))).toBe(true)
})
