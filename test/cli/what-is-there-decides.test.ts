import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { systemClock } from '../../src/core/index.ts'
import { takeLock } from '../../src/state/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { hashesBesideRecord, treeHashes } from '../fault/support.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { type Words, wordsOf, writeInputs } from '../support/command-words.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, PIPELINE, type PipelineParts, type Workspace } from '../support/workspace.ts'
import { threeMonths, trial } from './trial.ts'

const PARTS: PipelineParts = { transform: { secret: 'hmac', identity: 'hmac' } }
const KEYS = { SPILLWAY_MASK_KEY: 'k'.repeat(32), LEAKED: 'hunter2-of-the-year' }

/** Three months of a domain, exported. @param queries what else is searched for */
async function exported(queries: readonly object[] = []) {
  const here = await trial({ ...PARTS, extract: { queries } }, {}, KEYS)
  await exits(0, here.call('run'))
  writeInputs(here.folder, ['somebody@scatterholt.com'])
  return here
}

const filesIn = async ({ output }: Workspace, but: RegExp) =>
  [...(await treeHashes(output))].filter(([path]) => !but.test(path))

const ALL = await wordsOf('read', 'status', 'change')
const WRITERS: readonly Words[] = [['run'], ...(await wordsOf('change'))]
/** Digests are made with the key, and what is pruned or forgotten would be missing. */
const OTHERS = ['match', 'forget', 'prune']

it('no command that reads a data set needs more than its path: no valid file, and no variable for requests or masks', async () => {
  const here = await exported([{ type: 'secret', secret_env: 'LEAKED' }])
  const { folder, output, sandbox } = here
  const offline = (...args: string[]) => inThisProcess(args, folder, {})
  const commands: readonly Words[] = [
    ...ALL.filter(([name]) => !OTHERS.includes(name)),
    ['prune', '--older-than', '90y', '--dry-run'],
    ['verify', '--signature', '--key', 'pub.pem'],
  ]
  const areCarriedOutFrom = async (from: string, some = commands): Promise<void> => {
    for (const [command, ...rest] of some) {
      const { code, stderr } = await offline(command, from, ...rest)
      expect([command, from, code, stderr]).toEqual([command, from, 0, ''])
    }
  }
  await areCarriedOutFrom('out', THOROUGH ? commands : some(commands, 6))
  await areCarriedOutFrom(PIPELINE)
  expect(existsSync(join(folder, 'acme.tar'))).toBe(true)
  expect(readFileSync(join(output, '_report.html'), 'utf8')).toContain(new URL(sandbox.baseUrl).host)
  const SPILLWAY_MASK_KEY = 'another'.repeat(8)
  await exits(0, here.with({ SPILLWAY_MASK_KEY }).call('verify', '--complete'))
  for (const command of ['run', 'check'])
    await exits(2, offline(command, PIPELINE), 'SPILLWAY_BASE_URL is not set')
  await here.write({ ...PARTS, extract: { dommains: ['scatterholt.com'] } })
  await areCarriedOutFrom(PIPELINE, THOROUGH ? commands : commands.slice(0, 4))
  expect((await here.call('run')).code).toBe(2)
})

it('a path without a data set is said to be none, whatever the command', async () => {
  const folder = scratchFolder()
  mkdirSync(join(folder, 'empty'))
  for (const [command, ...rest] of THOROUGH ? ALL : some(ALL, 5))
    await exits(2, inThisProcess([command, 'empty', ...rest], folder, {}), 'There is no data set')
  expect(existsSync(join(folder, 'empty/_state'))).toBe(false)
})

const changes: readonly (readonly [string, PipelineParts])[] = [
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
    const [before, sent] = [await hashesBesideRecord(here.output), here.sandbox.requests.length]
    await here.write(threeMonths({ ...PARTS, ...changed }))
    for (const args of [['verify'], ['query', 'SELECT hash FROM credentials LIMIT 1'], ['status']]) {
      const { stderr } = await exits(0, here.call(args[0]!, ...args.slice(1)))
      expect(stderr.match(/the file and the data set differ/g)).toHaveLength(1)
    }
    const isMore = what === 'another query'
    expect((await here.call('plan')).code).toBe(isMore ? 0 : 2)
    const run = await here.call('run')
    expect([run.code, /--fresh|--redo '\*'/.test(run.stderr)]).toEqual(isMore ? [0, false] : [2, true])
    if (isMore) return
    expect(here.sandbox.requests).toHaveLength(sent)
    expect(await hashesBesideRecord(here.output)).toEqual(before)
  },
)

it('reports under secret: hmac need no key', async () => {
  const extract = { resource: 'reports', all: true }
  const here = await newWorkspace({ extract, transform: { secret: 'hmac' } })
  for (const command of ['plan', 'run', 'verify']) await exits(0, here.call(command))
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
  const stop = new AbortController().signal
  const how = { clock: systemClock, stop, fresh: false, warn: () => {} }
  const lock = await takeLock(storeAt(here.output), how)
  // Without the heartbeat of the lock.
  const files = () => filesIn(here, /^_state\/lock/)
  const before = await files()
  for (const [command, ...flags] of WRITERS) await exits(5, here.call(command, ...flags), 'Another run holds')
  expect(await files()).toEqual(before)
  await lock.release()
  for (const [command, ...flags] of some(WRITERS, 2)) await exits(0, here.call(command, ...flags))
})

it('a file among the shards that nothing names is refused by every command that changes, and stays', async () => {
  const here = await exported()
  const [shard = ''] = await shardPaths(here.output)
  // As a file manager or a sync tool copies it; what begins with a dot or an underscore is nobody's business.
  const copy = shard.replace('.parquet', ' (1).parquet')
  copyFileSync(join(here.output, shard), join(here.output, copy))
  writeFileSync(join(here.output, 'credentials/.DS_Store'), 'x')
  const files = () => filesIn(here, /^_state\/(?:lock|failed-start)|^_SUCCESS$|^_report.html$/)
  // Those of `check` are free.
  const searches = () =>
    here.sandbox.requests.filter(({ kind, status }) => kind === 'search' && status === 200).length
  const [before, sent] = [await files(), searches()]
  for (const [command, ...flags] of [...WRITERS, ['plan'], ['check']])
    await exits(2, here.call(command, ...flags), `rows for data (out/${copy}, pipeline.yaml:`)
  expect(await files()).toEqual(before)
  expect(searches()).toBe(sent)
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(false)
  const { stdout } = await exits(1, here.call('verify'))
  expect(stdout).toContain(`${copy}  is not in the manifest`)
  expect(stdout).not.toContain('spillway run')
  rmSync(join(here.output, copy))
  for (const [command, ...flags] of some(WRITERS, 2)) await exits(0, here.call(command, ...flags))
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
})

it('rows without manifest and _state are refused by every command that changes; run --fresh sets them aside', async () => {
  const here = await exported()
  for (const name of ['_manifest.json', '_state']) rmSync(join(here.output, name), { recursive: true })
  const before = await treeHashes(here.output)
  const [shard = ''] = await shardPaths(here.output)
  for (const [command, ...flags] of [...some(WRITERS, 4), ['plan']]) {
    const says = ['sign', 'tables'].includes(command) ? 'Nothing was exported yet' : shard
    await exits(2, here.call(command, ...flags), says)
  }
  expect(await filesIn(here, /^_state/)).toEqual([...before])
  await exits(0, here.call('run', '--fresh', '--yes'))
  expect(existsSync(join(here.output, '_state/orphans', `${shard}.orphan`))).toBe(true)
})

it('rows that a manifest of the day before does not name are refused, once the state is lost', async () => {
  const here = await exported()
  const manifest = readFileSync(join(here.output, '_manifest.json'))
  const windows = { from: '2024-01-01', until: '2024-05-01' }
  await here.write(threeMonths({ ...PARTS, extract: { windows } }))
  await exits(0, here.call('run'))
  // As a run that is killed before it replaces the manifest.
  writeFileSync(join(here.output, '_manifest.json'), manifest)
  rmSync(join(here.output, '_state'), { recursive: true })
  for (const [command, ...flags] of some(WRITERS, 3)) {
    await exits(2, here.call(command, ...flags), 'import_window=2024-04-01/part-00000.parquet')
    expect(existsSync(join(here.output, '_SUCCESS'))).toBe(false)
  }
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
