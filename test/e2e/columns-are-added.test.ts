import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace, PIPELINE, type PipelineParts, type Workspace } from '../support/workspace.ts'

const DOMAIN = 'scatterholt.com'
const SERVICE = { publicFields: true, nullRate: 0 }
const FACTS = { policy: { min_length: 12, classes: 3 } }
const ADDED = ['known_password_id', 'event_uid', 'secret_kind', 'secret_meets_policy']

/** Two months, then `until`; with more columns or without. */
function parts(until: string, isMore: boolean, load: PipelineParts['load'] = {}): PipelineParts {
  return {
    extract: {
      domains: [DOMAIN],
      windows: { from: '2024-01-01', until, every: 'month' },
      page_size: 20,
      concurrency: 1,
      include: isMore ? ['known_password_id'] : [],
    },
    transform: isMore ? { extra_columns: ['event_uid'], secret_facts: FACTS } : {},
    load: { table_formats: ['iceberg', 'delta'], ...load },
  }
}

async function begun(load?: PipelineParts['load']): Promise<Workspace> {
  const here = await newWorkspace(parts('2024-03-01', false, load), SERVICE)
  await exits(0, here.run())
  return here
}

async function grown(): Promise<Workspace> {
  const here = await begun()
  await here.write(parts('2024-05-01', true))
  await exits(0, here.run())
  return here
}

const SQL = `SELECT count(*) AS rows, ${ADDED.map((name) => `count(${name}) AS ${name}`).join(', ')} FROM credentials`

async function counts(here: Workspace, where = ''): Promise<Record<string, number>> {
  const { value } = await here.json('query', `${SQL} ${where}`)
  return Object.fromEntries(
    Object.entries((value as Record<string, unknown>[])[0]!).map(([name, n]) => [name, Number(n)]),
  )
}

const manifestText = (here: Workspace) => readFile(join(here.output, '_manifest.json'), 'utf8')

type Shards = { path: string; sha256: string; schema?: number; rows: number }[]
const shardsOf = async (here: Workspace) => JSON.parse(await manifestText(here)).shards as Shards

describe('columns that a pipeline file adds', () => {
  it('change nothing where nothing is left to export, and cost no request', async () => {
    const here = await begun()
    const [before, searches] = [await manifestText(here), here.searches().length]
    await here.write(parts('2024-03-01', true))
    await exits(0, here.run())
    const [was, is] = [before, await manifestText(here)].map((text) => ({ ...JSON.parse(text), runs: null }))
    expect(is).toEqual(was)
    expect(here.searches().length).toBe(searches)
    const told = '2 partitions without known_password_id, event_uid'
    for (const command of ['run', 'status']) expect((await here.call(command)).stdout).toContain(told)
    expect((await here.json('plan')).value).toMatchObject({ lacking_columns: 2, lacking: { columns: ADDED } })
  })

  it('are in what is exported from then on, and null in the shards before, whose bytes stay', async () => {
    const here = await begun()
    const before = await shardsOf(here)
    const searches = here.searches().length
    await here.write(parts('2024-05-01', true))
    await exits(0, here.run())
    const after = await shardsOf(here)
    expect(after.filter(({ schema }) => schema === 0)).toEqual(
      before.map((shard) => ({ ...shard, schema: 0 })),
    )
    const news = after.filter(({ schema }) => schema === 1)
    expect(news.length).toBe(2)
    const { rows, known_password_id: known, event_uid: uids, secret_kind: kinds } = await counts(here)
    const ofNews = news.reduce((sum, shard) => sum + shard.rows, 0)
    expect(rows).toBe(after.reduce((sum, shard) => sum + shard.rows, 0))
    expect(uids).toBe(ofNews)
    expect(known).toBeGreaterThan(0)
    expect(kinds).toBeGreaterThan(0)
    expect(await counts(here, "WHERE imported_at < '2024-03-01'")).toMatchObject({
      known_password_id: 0,
      event_uid: 0,
    })
    // The two new months as one chain, and nothing of the others.
    const since = here.searches().slice(searches)
    expect(since.length).toBe(Math.ceil(ofNews / 20))
    await exits(0, here.call('verify', '--complete'))
    const manifest = JSON.parse(await manifestText(here))
    expect(manifest.columns.find(({ name }: { name: string }) => name === 'event_uid').nullable).toBe(true)
    expect(manifest.columns.find(({ name }: { name: string }) => name === 'id').nullable).toBe(false)
    const [was, is] = manifest.schemas as string[][]
    expect(manifest.columns.map(({ name }: { name: string }) => name)).toEqual(is)
    expect(is!.filter((name) => !was!.includes(name))).toEqual(ADDED)
  })

  it('do not reach a chain that has begun: its cursor belongs to its columns', async () => {
    const here = await newWorkspace(parts('2024-05-01', false), SERVICE)
    await exits(4, here.run('--max-requests', '2'))
    await here.write(parts('2024-09-01', true))
    await exits(0, here.run())
    const shards = await shardsOf(here)
    const windows = (number: number) =>
      shards
        .filter(({ schema = 0 }) => schema === number)
        .map(({ path }) => path.split('/')[2]!.slice(14, 21))
    expect(windows(0)).toEqual(['2024-01', '2024-02', '2024-03', '2024-04'])
    expect(windows(1)).toEqual(['2024-05', '2024-06', '2024-07', '2024-08'])
    const includes = here.searches().map(({ body }) => JSON.stringify(body).includes('known_password_id'))
    expect(includes.indexOf(true)).toBe(includes.filter((has) => !has).length)
    await exits(0, here.call('verify', '--complete'))
  })

  it('come to a partition by --redo; `plan` says what that costs, and `status` that some lack them', async () => {
    const here = await grown()
    const { value } = await here.json('plan')
    const { lacking } = value as { lacking: { columns: string[]; partitions: number; requests: number } }
    expect(lacking).toMatchObject({ columns: ADDED, partitions: 2 })
    expect((await here.call('plan')).stdout).toMatch(
      /2 partitions \(\d+ rows\) are exported without known_pass/,
    )
    expect((await here.call('status')).stdout).toContain('2 partitions without known_password_id, event_uid')
    const searches = here.searches().length
    await exits(0, here.run('--redo', `domain.${DOMAIN}/2024-0[12]*`))
    expect(here.searches().length - searches).toBeLessThanOrEqual(lacking.requests)
    const { rows, event_uid: uids } = await counts(here)
    expect(uids).toBe(rows)
    expect(((await here.json('plan')).value as { lacking: unknown }).lacking).toBe(null)
    await exits(0, here.call('verify', '--complete'))
  })

  it('keep shards apart: compact joins those of one schema, and forget finds people in all', async () => {
    const here = await begun({ partition_by: ['query'] })
    await here.write(parts('2024-04-01', false, { partition_by: ['query'] }))
    await exits(0, here.run())
    for (const until of ['2024-05-01', '2024-06-01']) {
      await here.write(parts(until, true, { partition_by: ['query'] }))
      await exits(0, here.run())
    }
    const before = await counts(here)
    await exits(0, here.call('compact', '--min-shards', '2'))
    expect((await shardsOf(here)).map(({ schema = 0 }) => schema).sort()).toEqual([0, 1])
    expect(await counts(here)).toEqual(before)
    const { value } = await here.json(
      'query',
      'SELECT max(identity_name) AS a FROM credentials UNION ALL SELECT min(identity_name) FROM credentials WHERE event_uid IS NOT NULL',
    )
    const people = (value as { a: string }[]).map(({ a }) => a)
    await writeFile(join(here.folder, 'people.txt'), people.join('\n'))
    await exits(0, here.call('forget', '--identities', 'people.txt', '--yes'))
    expect((await counts(here)).rows).toBeLessThan(before.rows!)
    await exits(0, here.call('verify', '--complete'))
  })

  it('are in tables once: a load needs --evolve, and Iceberg and Delta list both schemas', async () => {
    const here = await begun()
    const load = (...flags: string[]) => here.call('load', '--to', 'duckdb:leaks.db', ...flags)
    await exits(0, load())
    await here.write(parts('2024-05-01', true))
    await exits(0, here.run())
    await exits(2, load())
    await exits(0, load('--evolve'))
    const loaded = await here.json('query', SQL, '--in', 'duckdb:leaks.db')
    const numbers = Object.values((loaded.value as Record<string, unknown>[])[0]!).map(Number)
    expect(numbers).toEqual(Object.values(await counts(here)))
    const { value } = await here.json('tables')
    expect(value).toMatchObject({ tables: [{ format: 'iceberg' }, { format: 'delta' }] })
    const hint = await readFile(join(here.output, '_iceberg/metadata/version-hint.text'), 'utf8').catch(
      () => null,
    )
    expect(hint).not.toBe(null)
    const metadata = JSON.parse(
      await readFile(join(here.output, `_iceberg/metadata/v${hint!.trim()}.metadata.json`), 'utf8'),
    )
    expect(metadata.schemas.length).toBe(2)
    expect(metadata['current-schema-id']).toBe(1)
    const log = (version: string) =>
      readFile(join(here.output, `_delta_log/${version.padStart(20, '0')}.json`), 'utf8')
    const schemas = [await log('0'), await log('1')].map(
      (text) => /"metaData":\{"id":"([^"]+)".*?"schemaString":"(.*?[^\\])"/.exec(text)!,
    )
    expect(schemas[0]![1]).toBe(schemas[1]![1])
    expect(schemas.map((match) => match[2]!.includes('event_uid'))).toEqual([false, true])
  })

  it.runIf(THOROUGH)('make the table of a script anew where it is older', async () => {
    const here = await begun()
    await exits(0, here.call('load', '--to', 'duckdb:old.db'))
    await here.write(parts('2024-05-01', true))
    await exits(0, here.run())
    const { stdout } = await exits(0, here.call('ddl', '--dialect', 'duckdb', '--sync'))
    expect(stdout.match(/ADD COLUMN IF NOT EXISTS/g)?.length).toBe(ADDED.length)
    expect(stdout).toContain('union_by_name = true')
    const redshift = await exits(0, here.call('ddl', '--dialect', 'redshift', '--sync'))
    expect(redshift.stdout.match(/CREATE TEMP TABLE "credentials_spillway_stage/g)?.length).toBe(2)
  })
})

describe('columns that a pipeline file takes away or changes', () => {
  it.runIf(THOROUGH)('go with --redo of everything', async () => {
    const here = await grown()
    await here.write(parts('2024-05-01', false))
    await exits(0, here.run('--redo', '*'))
    const { stdout } = await exits(0, here.call('query', 'SELECT * FROM credentials LIMIT 1', '--csv'))
    expect(stdout).not.toContain('event_uid')
    await exits(0, here.call('verify', '--complete'))
    await exits(0, here.cli('tables', PIPELINE))
  })
})
