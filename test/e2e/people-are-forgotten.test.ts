import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { hashesBesideRecord, treeHashes } from '../fault/support.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { writeKeyPair } from '../support/key-pair.ts'
import { quarantineOf } from '../support/quarantine.ts'
import { shardPaths } from '../support/read-shards.ts'
import { counted, type Row } from '../support/rows.ts'
import { CLI, exits } from '../support/run-cli.ts'
import { summaryPageIn } from '../support/summary-page.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  newWorkspace,
  type PipelineParts,
  SMALL,
  type Workspace,
  workspaceFor,
} from '../support/workspace.ts'

const MASK_KEY = 'an example key of thirty-two bytes'

const parts = (changes: PipelineParts = {}): PipelineParts => ({
  ...changes,
  extract: {
    domains: SMALL.domains,
    windows: { from: '2024-01-01', until: '2024-07-01', every: '91d' },
    ...changes.extract,
  },
})

/** Identities that are a part of no other one, the most frequent first. */
function frequent(rows: readonly Row[]): readonly string[] {
  const counts = counted(rows.map(({ identity_name }) => String(identity_name)))
  const all = [...counts.keys()]
  return [...counts]
    .filter(([name]) => /^[\x21-\x7e]+@[a-z.]+$/.test(name))
    .filter(([name]) => all.every((other) => other === name || !other.toLowerCase().includes(name)))
    .sort(([, a], [, b]) => b - a)
    .map(([name]) => name)
}

async function forget(here: Workspace, people: readonly string[], ...flags: string[]) {
  await writeFile(join(here.folder, 'people.txt'), `${people.join('\r\n')}\n`)
  // Other tests have copies in the folder for temporary files, which a note would name.
  const TMPDIR = join(here.folder, 'tmp')
  await mkdir(TMPDIR, { recursive: true })
  Object.assign(here.env, { TMPDIR })
  vi.stubEnv('TMPDIR', TMPDIR)
  onTestFinished(() => void vi.unstubAllEnvs())
  return here.json('forget', '--identities', 'people.txt', '--yes', ...flags)
}

/** The contents of every file of a data set but shards of Parquet, which are compressed. */
async function textsIn(folder: string): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.endsWith('.parquet')) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = await readFile(path)
    texts.set(path, (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('latin1'))
  }
  return texts
}

async function expectNowhere(here: Workspace, people: readonly string[]): Promise<void> {
  for (const [path, text] of await textsIn(here.output))
    for (const person of people)
      expect(text.toLowerCase().includes(person.toLowerCase()), `${path} names ${person}`).toBe(false)
}

const isOf = (people: readonly string[]) => {
  const folded = new Set(people.map((person) => person.toLowerCase()))
  return ({ identity_name }: Row): boolean => folded.has(String(identity_name).toLowerCase())
}

/** An export, its rows, and the person with most of them. */
async function withPerson(given = parts()) {
  const here = await exportedWorkspace(given)
  const rows = await here.rows()
  const [person = ''] = frequent(rows)
  return { here, rows, person, theirs: rows.filter(isOf([person])).length }
}

const SHARDS = [
  { format: 'parquet' },
  { format: 'csv', partition_by: 'query', compression: 'gzip', csv: { escape_formulas: true } },
  { format: 'parquet', partition_by: 'none', engine: 'parquetjs-lite' },
]
// How an engine writes what is left is tested in `test/load`.
it.each(some(SHARDS, 1))(
  'all rows of people go, the others stay as they were, and later runs drop theirs: %j',
  async (load) => {
    const given = parts({ load, extract: { include: ['auth_domains'] } })
    const here = await newWorkspace(given, { invalidRate: 0.1 })
    await exits(0, here.run())
    const before = await here.rows()
    const manifest = await here.manifest()
    const [first = '', second = ''] = frequent(before)
    // Another spelling, and somebody who is not there.
    const people = [first.toUpperCase(), `  ${second}`, 'nobody@nowhere.example']
    const isTheirs = isOf([first, second])
    const theirs = before.filter(isTheirs)
    expect(theirs.length).toBeGreaterThan(2)

    const tree = await treeHashes(here.output)
    const dry = await forget(here, people, '--dry-run')
    expect(dry.value).toMatchObject({ dry_run: true, identities: 3, rows: theirs.length })
    expect(await treeHashes(here.output)).toEqual(tree)

    const sent = here.searches().length
    const { value: done } = await exits(0, forget(here, people))
    const { shards, quarantined } = done
    expect(done).toEqual({ ...dry.value, dry_run: false })
    expect(shards).toBeGreaterThan(0)
    const others = before.filter((row) => !isTheirs(row))
    await here.expectExactly(others)
    await expectNowhere(here, [first, second])

    const after = await here.manifest()
    expect(after.forgotten).toEqual([
      { at: expect.any(String), identities: 3, rows: theirs.length, shards, quarantined },
    ])
    const sum = ({ totals }: typeof after) => totals.rows + totals.quarantined
    expect(sum(after) + after.totals.forgotten).toBe(sum(manifest))
    expect(after.totals.forgotten).toBe(theirs.length + quarantined)
    expect((await summaryPageIn(here.output)).figures.rows).toBe(others.length.toLocaleString('en'))
    // Only the shards concerned are new, under names that were never used.
    const paths = new Set(manifest.shards.map(({ path }) => path))
    const unchanged = after.shards.filter(({ path }) => paths.has(path))
    expect(unchanged.length).toBeGreaterThanOrEqual(manifest.shards.length - shards)
    for (const shard of unchanged) expect(manifest.shards).toContainEqual(shard)
    expect(await shardPaths(here.output)).toEqual(after.shards.map(({ path }) => path))
    expect((await here.json('verify', '--complete')).value).toMatchObject({ ok: true, complete: true })

    const settled = await treeHashes(here.output)
    expect((await forget(here, people)).value).toMatchObject({ rows: 0, shards: 0, quarantined: 0 })
    expect(await treeHashes(here.output)).toEqual(settled)
    expect(here.searches()).toHaveLength(sent)

    const { forgotten } = after.totals
    for (const flags of ['--redo *', '--fresh --yes']) {
      const { value } = await exits(0, here.json('run', ...flags.split(' ')))
      expect(value).toMatchObject({ rows: others.length, forgotten })
      await here.expectExactly(others)
      expect((await here.json('verify')).value).toMatchObject({ ok: true })
    }
    await expectNowhere(here, [first, second])
  },
)

const UNFINISHED = [
  { partition_by: ['query', 'window'], run: ['--max-requests', '9'], redo: false },
  // A folder is published when all of it is there again.
  { partition_by: 'query', run: ['--redo', '*', '--max-requests', '6'], redo: true },
  { partition_by: 'none', run: ['--max-requests', '9'], redo: false },
]
it.each(some(UNFINISHED, 1))(
  'while rows wait in the state, no file of it holds them any more, and the next run exports all others: %j',
  async ({ partition_by, run, redo }) => {
    const load = { format: 'csv', partition_by, shard_rows: 15 }
    const given = parts({ load, extract: { page_size: 9, concurrency: redo ? 1 : 2 } })
    const reference = await newWorkspace(given, { invalidRate: 0.15, nastyRate: 0 })
    await exits(0, reference.run())
    const all = await reference.rows()
    const sum = (await reference.manifest()).totals
    const here = redo ? reference : await workspaceFor(reference.sandbox, given)
    await exits(4, here.run(...run))
    // Those with rows in the state, and somebody in quarantine.
    const texts = [...(await textsIn(join(here.output, '_state'))).values()].join('')
    const waiting = frequent(all).filter((name) => texts.includes(name))
    const items = JSON.stringify(await quarantineOf(here.output))
    const rejected = [...items.matchAll(/"identity_name":"([a-z_.]+@[a-z.]+)"/g)].map(([, name]) => name!)
    const people = [...waiting.slice(0, 2), rejected[0]!, rejected.at(-1)!]
    expect(waiting.length).toBeGreaterThan(1)

    const done = await exits(0, forget(here, people))
    expect(done.value.quarantined).toBeGreaterThan(0)
    await expectNowhere(here, people)
    expect((await here.json('verify')).value).toMatchObject({ ok: true })
    const others = all.filter((row) => !isOf(people)(row))
    // The former shards are still those that readers find.
    if (redo) await here.expectExactly(others)
    expect((await forget(here, people)).value).toMatchObject({ rows: 0, shards: 0, quarantined: 0 })

    await exits(0, here.run())
    await here.expectExactly(others)
    await expectNowhere(here, people)
    const { totals } = await here.manifest()
    expect(totals.rows + totals.quarantined + totals.forgotten).toBe(sum.rows + sum.quarantined)
    expect((await here.json('verify', '--complete')).value).toMatchObject({ ok: true })
  },
)

it('lines that are no identity are named by their numbers, which count empty lines, and are not counted', async () => {
  const here = await exportedWorkspace(parts({ load: { format: 'csv' } }), { nastyRate: 0 })
  const [first = '', second = ''] = frequent(await here.rows())
  const lines = [first, '', `Ada <${first}>`, `${second}@x`, 'System.String[]', 'nobody@nowhere.example']
  const { value } = await exits(0, forget(here, lines))
  expect(value).toMatchObject({ identities: 2 })
  expect(value.notes).toEqual([
    expect.stringMatching(/^No identity, .*: lines 4, 5\. /),
    expect.stringMatching(/^Each address of a line is one of theirs, .*: line 3\./),
  ])
  expect(value.notes.join()).not.toContain(second)
  expect((await forget(here, [`SMTP:${second}; "${second}"`], '--dry-run')).value).toMatchObject({
    identities: 1,
    notes: [expect.stringContaining('line 1.')],
    rows: expect.any(Number),
  })
})

it.runIf(THOROUGH)('masked identities are found by their digests', async () => {
  const env = { SPILLWAY_MASK_KEY: MASK_KEY }
  const { here: plain, person, theirs } = await withPerson()
  const given = parts({ transform: { identity: 'hmac' } })
  const here = await workspaceFor(plain.sandbox, given, env)
  await here.run()
  const total = (await here.rows()).length
  // In any spelling: a digest is one of the normal form.
  const done = await forget(here, [` ${person.toUpperCase()}`])
  expect(done.value).toMatchObject({ identities: 1, rows: theirs })
  expect(await here.rows()).toHaveLength(total - theirs)
  expect((await forget(here, ['nobody@nowhere.example'])).value).toMatchObject({ rows: 0, shards: 0 })
  expect((await here.json('run', '--redo', '*')).value).toMatchObject({ forgotten: theirs })
  // The key of the digests is in a file of its own: whoever reads the log cannot test guesses.
  const { key } = JSON.parse(await readFile(join(here.output, '_state/suppression.json'), 'utf8'))
  for (const [path, text] of await textsIn(here.output))
    expect(text.includes(key), path).toBe(path.endsWith('suppression.json'))
  // People stay out whatever becomes of the mask key.
  const keyless = await workspaceFor(plain.sandbox, parts())
  await cp(here.output, keyless.output, { recursive: true })
  const again = await exits(0, keyless.json('run', '--fresh', '--yes'))
  expect(again.value).toMatchObject({ rows: total - theirs, forgotten: theirs })
  const other = await workspaceFor(plain.sandbox, given, { SPILLWAY_MASK_KEY: `${MASK_KEY}, another` })
  await cp(here.output, other.output, { recursive: true })
  await writeFile(join(other.folder, 'people.txt'), person)
  await exits(2, other.call('forget', '--identities', 'people.txt', '--yes'), 'mask key is not the one')
})

describe('what cannot be done is refused, and nothing is changed', () => {
  let here: Workspace

  const refuses = async (code: number, why: RegExp, ...flags: string[]): Promise<void> => {
    const tree = await treeHashes(here.output)
    await exits(code, here.call('forget', '--yes', ...flags), why)
    expect(await treeHashes(here.output)).toEqual(tree)
  }

  it.each([{ transform: { identity: 'drop' } }, { transform: { columns: ['id', 'domain'] } }])(
    'no identities in the data set: %o',
    async (changes) => {
      here = await exportedWorkspace(parts(changes))
      await writeFile(join(here.folder, 'people.txt'), 'somebody@scatterholt.com')
      await refuses(2, /holds no identities, so nobody can be found/, '--identities', 'people.txt')
    },
  )

  it('no identities given, or unreadable ones; a lost list', async () => {
    here = await newWorkspace(parts())
    await writeFile(join(here.folder, 'people.txt'), 'somebody@scatterholt.com')
    await here.run()
    await writeFile(join(here.folder, 'none.txt'), '\n \r\n')
    await refuses(2, /There is no identity in none.txt/, '--identities', 'none.txt')
    await refuses(2, /The identities in missing.txt cannot be read: ENOENT/, '--identities', 'missing.txt')
    await writeFile(join(here.folder, 'latin1.txt'), Buffer.from('jos\xe9@scatterholt.com', 'latin1'))
    await refuses(2, /The file is neither UTF-8 nor UTF-16 \(latin1.txt\)/, '--identities', 'latin1.txt')

    expect((await forget(here, ['somebody@scatterholt.com'])).value).toMatchObject({ rows: 0 })
    const list = join(here.output, '_state/suppression.json')
    const text = await readFile(list, 'utf8')
    await writeFile(list, text.replace(/[0-9a-f](?=[0-9a-f]{63})/, 'x'))
    await refuses(1, /list of forgotten people cannot be read/, '--identities', 'people.txt')
    const tree = await hashesBesideRecord(here.output)
    for (const flags of [[], ['--fresh', '--yes']]) {
      await exits(1, here.call('run', ...flags), 'list of forgotten people')
      expect(await hashesBesideRecord(here.output)).toEqual(tree)
    }
  })
})

it.runIf(THOROUGH)(
  'before the first run people are recorded, from stdin too, and that run keeps them out',
  async () => {
    const { here: first, rows, person, theirs } = await withPerson()
    const here = await workspaceFor(first.sandbox, parts({ load: { file_mode: '0644' } }))
    const notes = [expect.stringContaining(`Nothing is exported in ${here.output} yet`)]
    const dry = await forget(here, [person], '--dry-run')
    expect(dry.value).toMatchObject({ identities: 1, rows: 0, notes })
    expect(existsSync(here.output)).toBe(false)
    const { value } = await exits(0, forget(here, [person]))
    expect(value).toMatchObject({ identities: 1, rows: 0, shards: 0 })
    expect((await stat(join(here.output, '_state/suppression.json'))).mode & 0o777).toBe(0o600)

    const words = [CLI, 'forget', 'pipeline.yaml', '--yes', '--json']
    const forgetPiped = (input: string): unknown => {
      const options = { cwd: here.folder, env: { ...process.env, ...here.env }, input }
      return JSON.parse(spawnSync(process.execPath, words, options).stdout.toString())
    }
    expect(forgetPiped(`\ufeff${person}\r\nnobody@nowhere.example`)).toMatchObject({ identities: 2, rows: 0 })
    // An identity may have a carriage return, if line feeds end the lines.
    expect(forgetPiped('one\rperson\nanother\r\n')).toMatchObject({ identities: 2 })
    expect(forgetPiped('one person\ranother')).toMatchObject({ identities: 2 })

    const run = await here.json('run')
    expect(run.value).toMatchObject({ rows: rows.length - theirs, forgotten: theirs })
    await expectNowhere(here, [person])
    expect(await forget(here, [person], '--dry-run')).toMatchObject({ value: { rows: 0 } })
  },
)

it.runIf(THOROUGH)('a query that names one of them is said, with the way out', async () => {
  const { here: first, person } = await withPerson()
  const queries = [{ type: 'email', email: person }]
  const here = await workspaceFor(first.sandbox, { ...parts(), extract: { queries } })
  await here.run()
  const { value, stderr, stdout } = await forget(here, [person.toUpperCase()])
  expect(value.rows).toBeGreaterThan(0)
  expect(value.notes).toEqual([
    expect.stringMatching(/A query names one of them \(pipeline.yaml:\d+:\d+\).*another load.path/),
  ])
  expect(`${stdout}${stderr}`.toLowerCase()).not.toContain(person)
  // A shard without rows is left: readers get the columns from it.
  expect((await here.manifest()).shards).toMatchObject([{ rows: 0 }])
  expect((await here.json('verify', '--complete')).value).toMatchObject({ ok: true, complete: true })
})

it('the next load replaces their shards in a table; a signature from before is stale, and evidence lists it', async () => {
  const { here, rows, person, theirs } = await withPerson()
  const load = () => exits(0, here.json('load', '--to', 'duckdb:leaks.db'))
  await load()
  writeKeyPair(here.folder)
  const sign = () => exits(0, here.call('sign', '--key', 'key.pem'))
  await sign()

  const { shards } = (await forget(here, [person])).value
  const verify = () => here.call('verify', '--signature', '--key', 'pub.pem')
  const stale = await exits(1, verify())
  expect(stale.stdout).toMatch(/is missing.*People were forgotten at 20.*makes earlier signatures stale/)
  const evidenceOf = () => here.call('evidence', '--output', 'evidence.tar')
  expect((await evidenceOf()).stderr).toMatch(/is not signed.*makes earlier signatures stale/s)
  await sign()
  const { stdout } = await exits(0, verify())
  expect(stdout).toMatch(/complete: .*, but \d+ items? of forgotten people (was|were) left out/)
  await exits(0, evidenceOf())
  const evidence = await readFile(join(here.folder, 'evidence.tar'), 'latin1')
  expect(evidence).toMatch(/People were forgotten.*?1 identity, [1-9]\d* rows/s)
  expect(evidence).toMatch(/BUT \d+ items? of forgotten people (was|were) left out/)
  expect(evidence).not.toContain(person)

  expect((await load()).value).toMatchObject({ shards: { replaced: shards } })
  const count = `SELECT count(*) AS rows, count(*) FILTER (identity_name = '${person}') AS theirs FROM credentials`
  const { value } = await here.json('query', count, '--in', 'duckdb:leaks.db')
  expect(value).toEqual([{ rows: rows.length - theirs, theirs: 0 }])
})
