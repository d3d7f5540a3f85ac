import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, verify } from 'node:crypto'
import {
  chmod,
  copyFile,
  cp,
  mkdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Problem } from '../../src/data-set/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { newWorkspace, pipelineText, type Workspace } from '../support/workspace.ts'
import { THREE_MONTHS, threeMonths } from './trial.ts'

const PARTS = threeMonths({ load: { format: 'csv' } })

const ED25519 = generateKeyPairSync('ed25519')
const OTHER = generateKeyPairSync('ed25519')
const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PASSPHRASE = 'correct horse battery staple'
const PRIVATE = { type: 'pkcs8', format: 'pem' } as const
const PUBLIC = { type: 'spki', format: 'pem' } as const

const KEYS: Readonly<Record<string, string>> = {
  'key.pem': ED25519.privateKey.export(PRIVATE).toString(),
  'pub.pem': ED25519.publicKey.export(PUBLIC).toString(),
  'other.pem': OTHER.publicKey.export(PUBLIC).toString(),
  'rsa.pem': RSA.privateKey.export(PRIVATE).toString(),
  'locked.pem': ED25519.privateKey
    .export({ ...PRIVATE, cipher: 'aes-256-cbc', passphrase: PASSPHRASE })
    .toString(),
  'empty.pem': '',
}

/** Parts of the private keys that no output may contain. */
const BODIES = ['key.pem', 'rsa.pem', 'locked.pem'].map((name) => KEYS[name]!.split('\n').at(1)!.slice(24))

async function keysIn(here: Workspace): Promise<Workspace> {
  for (const [name, text] of Object.entries(KEYS)) await writeFile(join(here.folder, name), text)
  return here
}

const exported = async (): Promise<Workspace> => keysIn(await exportedWorkspace(PARTS))

const sign = (here: Workspace, key = 'key.pem') => here.call('sign', '--key', key)

const verifying = (here: Workspace, key: string, ...flags: string[]) =>
  here.call('verify', '--signature', '--key', key, ...flags)

async function problems(here: Workspace, key = 'pub.pem') {
  const { code, value } = await here.json('verify', '--signature', '--key', key)
  expect(code).toBe(value.ok ? 0 : 1)
  return value.problems as readonly Problem[]
}

it('a signed export is valid for verify and for openssl alone', async () => {
  const here = await exported()
  const { value } = await exits(0, here.json('sign', '--key', 'key.pem'))
  const { rows, bytes: size } = (await here.manifest()).totals
  const signature = join(here.output, '_manifest.sig')
  expect(value).toMatchObject({ pipeline: 'trial', signature, complete: true, shards: 3, rows, bytes: size })
  expect(await problems(here)).toEqual([])
  expect((await verifying(here, 'pub.pem')).stdout).toContain('signed under this key')

  const bytes = await readFile(signature)
  expect([bytes.length, (await stat(signature)).mode & 0o777]).toEqual([64, 0o600])
  const manifest = join(here.output, '_manifest.json')
  const args = ['pkeyutl', '-verify', '-pubin', '-inkey', 'pub.pem', '-rawin', '-in', manifest]
  const openssl = spawnSync('openssl', [...args, '-sigfile', signature], { cwd: here.folder })
  // Without openssl (or with one before 3.0), the same check in Node.js.
  if (openssl.error === undefined) expect(openssl.status, String(openssl.stderr)).toBe(0)
  else expect(verify(null, await readFile(manifest), ED25519.publicKey, bytes)).toBe(true)

  expect((await sign(here)).code).toBe(0)
  expect(await readFile(signature)).toEqual(bytes)
})

it('every changed, missing or foreign file is one clear problem', async () => {
  const here = await exported()
  const [first, second] = (await shardPaths(here.output)) as [string, string]
  const unsigned = await problems(here)
  expect(unsigned).toMatchObject([{ path: '_manifest.sig', problem: expect.stringContaining('is missing') }])
  expect((await sign(here)).code).toBe(0)
  const file = (name: string): string => join(here.output, name)
  const manifest = await readFile(file('_manifest.json'), 'utf8')
  const other = manifest.replace('"retries": 0', '"retries": 1')
  const SIGNATURE = '_manifest.sig'
  for (const [name, damage, path, problem] of [
    ['_manifest.json', (at: string) => writeFile(at, other), SIGNATURE, 'manifest was changed'],
    [first, (at: string) => copyFile(file(second), at), first, 'holds \\d+ bytes instead of|SHA-256'],
    [SIGNATURE, (at: string) => truncate(at, 32), SIGNATURE, '32 bytes instead of 64'],
  ] as const) {
    const before = await readFile(file(name))
    await damage(file(name))
    const found = await problems(here)
    await writeFile(file(name), before)
    expect(found, name).toMatchObject([{ path, problem: expect.stringMatching(problem) }])
  }
  const foreign = [{ path: SIGNATURE, problem: expect.stringContaining('under another key') }]
  expect(await problems(here, 'other.pem')).toMatchObject(foreign)
  expect(await problems(here)).toEqual([])

  // The checkpoint cannot add a shard that is not signed.
  const signed = await Promise.all(['_manifest.json', '_manifest.sig'].map((name) => readFile(file(name))))
  await here.write({ ...PARTS, extract: { ...PARTS.extract, domains: ['scatterholt.com', 'quillmere.net'] } })
  expect((await here.call('run')).code).toBe(0)
  await writeFile(file('_manifest.json'), signed[0]!)
  await writeFile(file('_manifest.sig'), signed[1]!)
  const [scope, ...added] = await problems(here)
  expect(scope!.problem).toBe('it does not cover domain.quillmere.net, which the pipeline requests')
  expect(added).toHaveLength(3)
  for (const { path, problem } of added) {
    expect(path).toContain('quillmere.net')
    expect(problem).toMatch(/^is (?:not in the manifest|about to be added)/)
  }
})

it('what was requested, and the state of each partition, are signed', async () => {
  const here = await exported()
  const path = join(here.output, '_manifest.json')
  const manifest = await readFile(path, 'utf8')
  const { scope, settings, partitions, shards } = await here.manifest()
  expect(scope).toMatchObject({
    queries: ['domain.scatterholt.com'],
    windows: { from: '2024-01-01T00:00:00Z', until: '2024-04-01T00:00:00Z', every: 'month' },
  })
  expect(settings).toMatchObject({ 'extract.order': 'asc', 'transform.secret': 'redact' })
  expect(partitions.map(({ key, state }) => `${key} ${state}`)).toEqual([
    'domain.scatterholt.com/2024-01-01..2024-02-01 done',
    'domain.scatterholt.com/2024-02-01..2024-03-01 done',
    'domain.scatterholt.com/2024-03-01..2024-04-01 done',
  ])

  // What is changed before the signature is written anew, and the truth is signed.
  for (const [find, replace] of [
    ['"domain.scatterholt.com"\n', '"domain.quillmere.net"\n'],
    ['"state":"done","rows":', '"state":"pruned","rows":'],
    ['"extract.order": "asc"', '"extract.order": "desc"'],
    [shards[0]!.sha256, 'ab'.repeat(32)],
  ] as const) {
    expect(manifest).toContain(find)
    await writeFile(path, manifest.replace(find, replace))
    await exits(0, sign(here))
    expect(await readFile(path, 'utf8')).toBe(manifest)
    expect(await problems(here)).toEqual([])
  }

  // A file that asks for more than was signed.
  const windows = { ...THREE_MONTHS, until: '2024-06-01' }
  await here.write({ ...PARTS, extract: { ...PARTS.extract, windows } })
  const expected =
    /covers windows from 2024-01-01T00:00:00Z until 2024-04-01.*requests windows .* until 2024-06-01/
  const problem = expect.stringMatching(expected)
  expect(await problems(here)).toMatchObject([{ path: '_manifest.json', problem }])
})

it('a signature stays until what it signs changes: a run with nothing to do leaves it, one that exports removes it', async () => {
  const here = await exported()
  // Its service has another address than that of the shared export.
  expect((await here.call('run')).code).toBe(0)
  expect((await sign(here)).code).toBe(0)
  await writeFile(join(here.folder, 'people.txt'), 'nobody@scatterholt.com\n')
  for (const [command = '', ...flags] of [
    ['run'],
    ['prune', '--older-than', '100y', '--yes'],
    ['forget', '--identities', 'people.txt', '--yes'],
  ]) {
    await exits(0, here.call(command, ...flags))
    expect(await problems(here)).toEqual([])
  }
  // What it signs is signed again, although runs have come since.
  expect((await sign(here)).code).toBe(0)
  const changed = 'the data set has changed since it was signed'
  const again = await exits(0, here.call('run', '--redo', '*'))
  expect((await here.call('status')).stdout).toContain(`to do: ${changed}`)
  expect(again.stderr).toContain('its former signature was removed')
  expect(await problems(here)).toMatchObject([{ path: '_manifest.sig', problem: /missing/ }])
  // A foreign file is kept.
  await writeFile(join(here.output, '_manifest.sig'), 'somebody else’s')
  await exits(2, sign(here), 'no signature of spillway')
  expect((await here.call('run')).code).toBe(0)
  const kept = join(here.output, '_state/orphans/_manifest.sig.orphan')
  expect(await readFile(kept, 'utf8')).toBe('somebody else’s')
  expect((await sign(here)).code).toBe(0)
  expect((await here.call('status')).stdout).not.toContain(changed)
})

it('a signed manifest that was changed anywhere is written anew by the next run, without its signature', async () => {
  const here = await exported()
  const path = join(here.output, '_manifest.json')
  for (const change of [
    (text: string) => `${text}x`,
    (text: string) => text.replace('"status": "complete"', '"status": "failed"'),
  ]) {
    await exits(0, here.call('sign', '--key', 'key.pem'))
    const signed = await readFile(path, 'utf8')
    expect(change(signed)).not.toBe(signed)
    await writeFile(path, change(signed))
    const { stdout } = await here.call('verify')
    // The mark is there.
    expect(stdout).not.toMatch(/INCOMPLETE: it has no _SUCCESS\.$/m)
    await exits(0, here.run())
    await exits(0, here.call('verify', '--complete'))
    expect((await here.call('verify', '--signature', '--key', 'pub.pem')).stdout).toContain('_manifest.sig')
  }
})

it('an export that differs from its checkpoint is not signed, also while a partition is exported again', async () => {
  const nothing = await keysIn(await newWorkspace(PARTS))
  await exits(2, sign(nothing), 'Nothing was exported yet')
  await expect(stat(nothing.output)).rejects.toThrow()

  const extract = { ...PARTS.extract, page_size: 5 }
  const here = await keysIn(await exportedWorkspace({ ...PARTS, extract }))
  const [first] = (await shardPaths(here.output)) as [string]
  await truncate(join(here.output, first), 1)
  await exits(1, sign(here), first)
  await rm(join(here.output, first))
  const window = /import_window=([^/]+)/.exec(first)![1]
  await exits(4, here.run('--redo', `domain.scatterholt.com/${window}*`, '--max-requests', '1'))
  await exits(1, sign(here), 'A shard is missing')
  await exits(1, here.call('evidence', '--output', 'evidence.tar.gz'), 'A shard is missing')
  await expect(stat(join(here.output, '_manifest.sig'))).rejects.toThrow()
})

describe('a wrong key', () => {
  const SIGN = ['sign', 'pipeline.yaml', '--key']
  const VERIFY = ['verify', 'pipeline.yaml', '--signature', '--key']
  const OPENED = { SPILLWAY_SIGNING_PASSPHRASE: 'wrong horse battery staple' }

  it.each([
    [[...SIGN, 'none.pem'], {}, 'does not exist'],
    [[...SIGN, 'empty.pem'], {}, 'no private key in PEM'],
    [[...SIGN, 'pub.pem'], {}, 'no private key in PEM'],
    [[...SIGN, 'rsa.pem'], {}, 'of the kind rsa, not ed25519'],
    [[...SIGN, 'locked.pem'], {}, 'SPILLWAY_SIGNING_PASSPHRASE is not set'],
    [[...SIGN, 'locked.pem'], OPENED, 'cannot be opened with SPILLWAY_SIGNING_PASSPHRASE'],
    [[...VERIFY, 'empty.pem'], {}, 'no public key in PEM'],
    [[...VERIFY, 'key.pem'], {}, 'holds a private key'],
    [['verify', 'pipeline.yaml', '--signature'], {}, '--signature goes with --key'],
  ])('%j is refused with exit 2, and nothing of a key is shown', async (args, env, why) => {
    const folder = scratchFolder()
    await writeFile(join(folder, 'pipeline.yaml'), pipelineText(PARTS))
    for (const [name, text] of Object.entries(KEYS)) await writeFile(join(folder, name), text)
    const access = { SPILLWAY_BASE_URL: 'http://127.0.0.1:1', ...env }
    const refused = inThisProcess([...args, '--log-level', 'debug'], folder, access)
    const { stdout, stderr } = await exits(2, refused, why)
    for (const secret of [...BODIES, OPENED.SPILLWAY_SIGNING_PASSPHRASE])
      expect(stdout + stderr).not.toContain(secret)
  })
})

it('a key may be encrypted, given its passphrase; one that others may read is named, and still used', async () => {
  const here = await exported()
  Object.assign(here.env, { SPILLWAY_SIGNING_PASSPHRASE: PASSPHRASE })
  const { stdout, stderr } = await exits(0, sign(here, 'locked.pem'))
  expect(await problems(here)).toEqual([])
  for (const secret of [...BODIES, PASSPHRASE]) expect(stdout + stderr).not.toContain(secret)
  // Services get files by group.
  for (const mode of process.platform === 'win32' ? [] : [0o644, 0o600, 0o440]) {
    await chmod(join(here.folder, 'key.pem'), mode)
    const { stderr } = await exits(0, sign(here))
    const isNamed = /every user of this machine may read or change/.test(stderr)
    expect([mode, isNamed]).toEqual([mode, mode === 0o644])
  }
})

const FOLDER = 'credentials/query=domain.scatterholt.com/import_window=2024-01-01'
const ADDED = [
  ...['credentials/part-00000.csv', 'credentials/foo=bar/part-00000.parquet', 'credentials/PART-00001.CSV'],
  ...[`${FOLDER}/part-00001.csv`, `${FOLDER}/part-00000 copy.csv`, `${FOLDER}/more/part-00000.csv`],
  ...['reports/x', 'data.csv.gz', 'Credentials/part-00000.parquet', 'more/query=x/DATA.CSV'],
]
/** No pattern for shards matches these, or readers skip them. */
const HARMLESS = ['README.md', '_more/data.parquet', 'credentials/.hidden.parquet']

it('files that are not on record are a problem each, whatever their names; empty folders are none', async () => {
  const here = await exported()
  for (const path of [...ADDED, ...HARMLESS]) {
    await mkdir(dirname(join(here.output, path)), { recursive: true })
    await writeFile(join(here.output, path), '')
  }
  await mkdir(join(here.output, 'credentials/empty=1/empty'), { recursive: true })
  const [shard] = (await shardPaths(here.output)).filter((path) => path.startsWith(FOLDER))
  await symlink(join(here.output, shard!), join(here.output, 'credentials/link.csv'))
  const { value } = await exits(1, here.json('verify'))
  const found = value.problems.map(({ path, cause }: Problem) => `${path} ${cause}`).sort()
  expect(found).toEqual([...ADDED, 'credentials/link.csv'].map((path) => `${path} not_on_record`).sort())
})

describe('the signed export of another data set in place of this one', () => {
  /** Another data set, signed under the same key with the same masking, and its files in place of these. */
  async function swapped(parts: object, files: readonly string[]): Promise<readonly Problem[]> {
    const [here, other] = [await exported(), await keysIn(await newWorkspace(PARTS))]
    await other.write({ ...PARTS, ...parts })
    expect((await other.call('run')).code).toBe(0)
    for (const each of [here, other]) expect((await sign(each)).code).toBe(0)
    for (const name of files) {
      await rm(join(here.output, name), { recursive: true, force: true })
      await cp(join(other.output, name), join(here.output, name), { recursive: true })
    }
    return problems(here)
  }
  const ALL = ['credentials', '_manifest.json', '_manifest.sig', '_state']
  const MOVED = ['credentials', '_manifest.json', '_manifest.sig']

  it.each([
    [{ name: 'another' }, 'is of the pipeline "another", not of "trial"'],
    [{ transform: { secret: 'partial' } }, 'transform.secret was "partial"'],
  ])('is found by what differs: %o', async (parts, problem) => {
    const said = { path: '_manifest.json', problem: expect.stringContaining(problem), cause: 'signature' }
    expect(await swapped(parts, ALL)).toContainEqual(said)
  })

  it('is found where the checkpoint is still its own', async () => {
    const found = await swapped({ name: 'another', load: { format: 'csv', compression: 'gzip' } }, MOVED)
    const texts = found.map(({ problem }) => problem)
    expect(texts).toContainEqual(expect.stringContaining('is of the pipeline "another", not of "trial"'))
    expect(texts).toContainEqual(expect.stringContaining('load.compression was "gzip"'))
  })
})

it('an older signed export is valid, with its time shown, unless --not-before gives a later time', async () => {
  const here = await exported()
  expect((await sign(here)).code).toBe(0)
  const plain = await exits(0, verifying(here, 'pub.pem'))
  expect(plain.stdout).toContain('does not show that they are the latest')
  const { runs } = await here.manifest()
  const ended = runs.at(-1)!.finished_at!
  const later = new Date(Date.parse(ended) + 1).toISOString()
  const since = (code: number, time: string, ...says: string[]) =>
    exits(code, verifying(here, 'pub.pem', '--not-before', time), ...says)
  for (const time of ['2024-07-01', ended])
    expect((await since(0, time)).stdout).toContain(`ended at ${time} or later`)
  for (const time of [later, '2100-01-01'])
    expect((await since(1, time)).stdout).toContain('is older than required')
  for (const time of ['yesterday', '2024-02-30', '']) await since(2, time, '--not-before')
  expect((await here.call('verify', '--not-before', '2024-07-01')).code).toBe(2)
})
