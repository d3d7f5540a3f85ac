import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { metadataOf } from '../open-tables/world.ts'
import { exits } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const SERVICE = { publicFields: true, nullRate: 0 }
const FACTS = { policy: { min_length: 12, classes: 3 } }
const ADDED = ['known_password_id', 'event_uid', 'secret_kind', 'secret_meets_policy']

/** From January on; with more columns or without. */
function parts(until: string, isMore: boolean, load: PipelineParts['load'] = {}): PipelineParts {
  return {
    extract: {
      domains: ['scatterholt.com'],
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

/** Runs with more columns, or without, until a later month. */
async function goesOn(here: Workspace, until = '2024-05-01', isMore = true, load?: PipelineParts['load']) {
  await here.write(parts(until, isMore, load))
  return exits(0, here.run())
}

async function grown(): Promise<Workspace> {
  const here = await begun()
  await goesOn(here)
  return here
}

const SQL = `SELECT count(*) AS rows, ${ADDED.map((name) => `count(${name}) AS ${name}`).join(', ')} FROM credentials`

async function counts(here: Workspace, where = '', ...flags: string[]): Promise<Record<string, number>> {
  const [found] = (await here.json('query', `${SQL} ${where}`, ...flags)).value
  return Object.fromEntries(Object.entries(found).map(([name, n]) => [name, Number(n)]))
}

const shardsOf = async (here: Workspace) => (await here.manifest()).shards
const isWhole = (here: Workspace) => exits(0, here.call('verify', '--complete'))

describe('columns that a pipeline file adds', () => {
  it('change nothing where nothing is left to export, and cost no request', async () => {
    const here = await begun()
    const [before, searches] = [await here.manifest(), here.searches().length]
    await goesOn(here, '2024-03-01')
    expect({ ...(await here.manifest()), runs: null }).toEqual({ ...before, runs: null })
    expect(here.searches().length).toBe(searches)
    const told = '2 partitions without known_password_id, event_uid'
    for (const command of ['run', 'status']) expect((await here.call(command)).stdout).toContain(told)
    expect((await here.json('plan')).value).toMatchObject({ lacking_columns: 2, lacking: { columns: ADDED } })
  })

  it('are in what is exported from then on, and null in the shards before, whose bytes stay', async () => {
    const here = await begun()
    const [before, searches] = [await shardsOf(here), here.searches().length]
    await goesOn(here)
    const { shards, schemas, columns } = await here.manifest()
    const [ours, news] = [0, 1].map((schema) => shards.filter((shard) => shard.schema === schema))
    expect(ours).toEqual(before.map((shard) => ({ ...shard, schema: 0 })))
    expect(news!.length).toBe(2)
    const ofNews = news!.reduce((sum, shard) => sum + shard.rows, 0)
    const found = await counts(here)
    const rows = shards.reduce((sum, shard) => sum + shard.rows, 0)
    expect(found).toMatchObject({ rows, event_uid: ofNews })
    expect(found.known_password_id).toBeGreaterThan(0)
    expect(found.secret_kind).toBeGreaterThan(0)
    const none = { known_password_id: 0, event_uid: 0 }
    expect(await counts(here, "WHERE imported_at < '2024-03-01'")).toMatchObject(none)
    // The two new months as one chain, and nothing of the others.
    expect(here.searches().length - searches).toBe(Math.ceil(ofNews / 20))
    await isWhole(here)
    const nullable = Object.fromEntries(columns.map((column) => [column.name, column.nullable]))
    expect(nullable).toMatchObject({ event_uid: true, id: false })
    expect(schemas[1]).toEqual(Object.keys(nullable))
    expect(schemas[1]!.filter((name) => !schemas[0]!.includes(name))).toEqual(ADDED)
  })

  it('do not reach a chain that has begun: its cursor belongs to its columns', async () => {
    const here = await newWorkspace(parts('2024-05-01', false), SERVICE)
    await exits(4, here.run('--max-requests', '2'))
    await goesOn(here, '2024-09-01')
    const shards = await shardsOf(here)
    const windows = (number: number) =>
      shards
        .filter(({ schema = 0 }) => schema === number)
        .map(({ path }) => path.split('/')[2]!.slice(14, 21))
    expect(windows(0)).toEqual(['2024-01', '2024-02', '2024-03', '2024-04'])
    expect(windows(1)).toEqual(['2024-05', '2024-06', '2024-07', '2024-08'])
    const includes = here.searches().map(({ body }) => JSON.stringify(body).includes('known_password_id'))
    expect(includes.indexOf(true)).toBe(includes.filter((has) => !has).length)
    await isWhole(here)
  })

  it('come to a partition by --redo; `plan` says what that costs, and `status` that some lack them', async () => {
    const here = await grown()
    const { lacking } = (await here.json('plan')).value
    expect(lacking).toMatchObject({ columns: ADDED, partitions: 2 })
    expect((await here.call('plan')).stdout).toMatch(
      /2 partitions \(\d+ rows\) are exported without known_pass/,
    )
    expect((await here.call('status')).stdout).toContain('2 partitions without known_password_id, event_uid')
    const searches = here.searches().length
    await exits(0, here.run('--redo', 'domain.scatterholt.com/2024-0[12]*'))
    expect(here.searches().length - searches).toBeLessThanOrEqual(lacking.requests)
    const { rows, event_uid: uids } = await counts(here)
    expect(uids).toBe(rows)
    expect((await here.json('plan')).value.lacking).toBe(null)
    await isWhole(here)
  })

  it('keep shards apart: compact joins those of one schema, and forget finds people in all', async () => {
    const load = { partition_by: ['query'] }
    const here = await begun(load)
    await goesOn(here, '2024-04-01', false, load)
    for (const until of ['2024-05-01', '2024-06-01']) await goesOn(here, until, true, load)
    const before = await counts(here)
    await exits(0, here.call('compact', '--min-shards', '2'))
    expect((await shardsOf(here)).map(({ schema = 0 }) => schema).sort()).toEqual([0, 1])
    expect(await counts(here)).toEqual(before)
    const { stdout } = await here.call(
      'query',
      'SELECT max(identity_name) FROM credentials UNION ALL SELECT min(identity_name) FROM credentials WHERE event_uid IS NOT NULL',
      '--csv',
    )
    await writeFile(join(here.folder, 'people.txt'), stdout.replace(/^.*\n/, ''))
    await exits(0, here.call('forget', '--identities', 'people.txt', '--yes'))
    expect((await counts(here)).rows).toBeLessThan(before.rows!)
    await isWhole(here)
  })

  it('are in tables once: a load needs --evolve, and Iceberg and Delta list both schemas', async () => {
    const here = await begun()
    const load = (...flags: string[]) => here.call('load', '--to', 'duckdb:leaks.db', ...flags)
    await exits(0, load())
    await goesOn(here)
    await exits(2, load())
    await exits(0, load('--evolve'))
    expect(await counts(here, '', '--in', 'duckdb:leaks.db')).toEqual(await counts(here))
    const { tables } = (await here.json('tables')).value
    expect(tables).toMatchObject([{ format: 'iceberg' }, { format: 'delta' }])
    const metadata = await metadataOf(here.output)
    expect(metadata.schemas.length).toBe(2)
    expect(metadata['current-schema-id']).toBe(1)
    const logs = [0, 1].map((version) =>
      join(here.output, `_delta_log/${String(version).padStart(20, '0')}.json`),
    )
    const [first, second] = (await Promise.all(logs.map((path) => readFile(path, 'utf8')))).map(
      (text) => /"metaData":\{"id":"([^"]+)".*?"schemaString":"(.*?[^\\])"/.exec(text)!,
    )
    expect(first![1]).toBe(second![1])
    expect([first, second].map((match) => match![2]!.includes('event_uid'))).toEqual([false, true])
  })

  it.runIf(THOROUGH)('make the table of a script anew where it is older', async () => {
    const here = await begun()
    await exits(0, here.call('load', '--to', 'duckdb:old.db'))
    await goesOn(here)
    const { stdout } = await exits(0, here.call('ddl', '--dialect', 'duckdb', '--sync'))
    expect(stdout.match(/ADD COLUMN IF NOT EXISTS/g)?.length).toBe(ADDED.length)
    expect(stdout).toContain('union_by_name = true')
    const redshift = await exits(0, here.call('ddl', '--dialect', 'redshift', '--sync'))
    expect(redshift.stdout.match(/CREATE TEMP TABLE "credentials_spillway_stage/g)?.length).toBe(2)
  })
})

it.runIf(THOROUGH)('columns that a pipeline file takes away go with --redo of everything', async () => {
  const here = await grown()
  await here.write(parts('2024-05-01', false))
  await exits(0, here.run('--redo', '*'))
  const { stdout } = await exits(0, here.call('query', 'SELECT * FROM credentials LIMIT 1', '--csv'))
  expect(stdout).not.toContain('event_uid')
  await isWhole(here)
  await exits(0, here.call('tables'))
})
