import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { statusShape } from '../support/json-shapes.ts'
import { shardPaths, sql } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const FILE = {
  extract: { domains: DOMAINS, windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' } },
}

const succeeded = ({ output }: Workspace): boolean => existsSync(join(output, '_SUCCESS'))

type Run = readonly [flags: string, code: number, isWhole: boolean]
const ALL: Run = ['', 0, true]
const narrowed = (flags: string) => [[flags, 0, false], ALL, [flags, 0, true]] as const
const EACH = [
  ['--domain scatterholt.com', 0, false],
  ['--domain quillmere.net', 0, true],
] as const
const BUDGET = [['--max-requests 1', 4, false], ['--domain scatterholt.com', 0, false], ALL] as const

const RUNS: readonly { readonly runs: readonly Run[]; readonly load?: PipelineParts['load'] }[] = [
  { runs: BUDGET },
  // Nothing is missing any more, and a narrower run does not change that.
  { runs: narrowed('--domain scatterholt.com') },
  { runs: EACH },
  { runs: narrowed('--until 2024-02-01') },
  { runs: narrowed('--from 2024-02-01') },
  { runs: BUDGET, load: { partition_by: 'none' } },
]

it.each(some(RUNS, 3))('_SUCCESS stands once nothing of the file is missing: $runs $load', async (given) => {
  const here = await newWorkspace({ ...FILE, ...(given.load && { load: given.load }) })
  for (const [flags, code, isWhole] of given.runs) {
    await exits(code, here.run(...flags.split(' ').filter(Boolean)))
    expect([flags, succeeded(here)]).toEqual([flags, isWhole])
  }
})

it('a file with more queries than before has no _SUCCESS, even if a narrower run finds its part done', async () => {
  const here = await newWorkspace({ extract: { ...FILE.extract, domains: ['scatterholt.com'] } })
  expect((await here.run()).code).toBe(0)
  await here.write(FILE)
  expect((await here.run('--domain', 'scatterholt.com')).summary).toMatchObject({ requests: 0 })
  expect(succeeded(here)).toBe(false)
})

it('a query whose name needs the mask key counts as any other', async () => {
  const query = (email: string) => ({ type: 'email', email }) as const
  const file = (...emails: string[]): PipelineParts => ({
    extract: { queries: emails.map(query) },
    transform: { identity: 'hmac' },
  })
  const here = await newWorkspace(file('a@quillmere.net'), {}, { SPILLWAY_MASK_KEY: 'k'.repeat(32) })
  const { stdout } = await exits(0, here.run())
  expect(stdout).toContain('complete: its one partition')
  await exits(0, here.call('verify', '--complete'))
  await here.write(file('a@quillmere.net', 'b@quillmere.net'))
  for (const command of ['verify', 'status', 'summary'])
    expect((await here.call(command)).stdout).toContain('INCOMPLETE: 1 of 2 partitions not done')
  await exits(1, here.call('verify', '--complete'))
  const { SPILLWAY_MASK_KEY: _, ...env } = here.env
  const { stderr } = await exits(0, inThisProcess(['status', 'pipeline.yaml'], here.folder, env))
  expect(stderr).toContain('it was exported for 1 query, and the file has 2; the mask key tells which')
})

/** The sandbox has rows from 2024 on. */
const BEFORE = { from: '2023-01-01', until: '2023-03-01', every: 'month' }
const parts = (load: PipelineParts['load'] & object, windows: object = BEFORE): PipelineParts => ({
  extract: { domains: [...DOMAINS, 'nowhere.example'], windows },
  load,
})

const MONTH = 'import_window=2023-01-01'
const LOADS = [
  [{}, `query=domain.scatterholt.com/${MONTH}/part-00000.parquet`],
  [{ format: 'csv', partition_by: 'window', engine: 'csv-stringify' }, `${MONTH}/part-00000.csv`],
  [{ format: 'csv', compression: 'gzip', partition_by: 'none' }, 'part-00000.csv.gz'],
  [{ engine: 'parquetjs-lite', partition_by: 'none' }, 'part-00000.parquet'],
] as const

it.each(some(LOADS, 1))(
  'an export without rows publishes one shard without rows once it is complete: %j',
  async (load, path) => {
    const here = await newWorkspace(parts(load), { emptyPageRate: 0.3 })
    const { summary: stopped } = await exits(4, here.run('--max-requests', '1'))
    expect(stopped).toMatchObject({ status: 'budget', rows: 0, shards: 0 })
    expect(await shardPaths(here.output)).toEqual([])
    const { summary } = await exits(0, here.run())
    expect(summary).toMatchObject({ status: 'complete', rows: 0, shards: 1 })
    const { shards, totals, columns } = await here.manifest()
    const partitions = ['domain.scatterholt.com/2023-01-01..2023-02-01']
    expect(shards).toMatchObject([{ rows: 0, partitions, imported_at: null }])
    expect(totals).toMatchObject({ rows: 0, shards: 1, bytes: summary.bytes })
    const found = await shardPaths(here.output)
    expect(found).toEqual([`credentials/${path}`])
    expect(succeeded(here)).toBe(true)
    expect((await here.call('verify')).code).toBe(0)

    const reader = path.includes('.csv') ? 'read_csv' : 'read_parquet'
    const table = `${reader}('${here.output}/credentials/**/part-*', hive_partitioning = true)`
    const names = (await sql(`describe select * from ${table}`)).map(({ column_name }) => column_name)
    const folders = ['import_window', 'query'].filter((name) => path.includes(`${name}=`))
    expect(names).toEqual([...columns.map(({ name }) => name), ...folders])
    expect(await sql(`select count(*)::int as n from ${table}`)).toEqual([{ n: 0 }])

    expect((await here.run()).summary).toMatchObject({ status: 'complete', requests: 0, shards: 0 })
    expect(await shardPaths(here.output)).toEqual(found)
  },
)

it('rows that come later add shards, and what has none gets none', async () => {
  const here = await newWorkspace(parts({ partition_by: 'query' }))
  expect((await here.run()).summary).toMatchObject({ rows: 0, shards: 1 })
  await here.write(parts({ partition_by: 'query' }, { ...BEFORE, until: '2025-01-01' }))
  expect((await here.run()).summary).toMatchObject({ status: 'complete', rows: 300, shards: 2 })
  expect(await shardPaths(here.output)).toEqual([
    'credentials/query=domain.quillmere.net/part-00000.parquet',
    'credentials/query=domain.scatterholt.com/part-00000.parquet',
    'credentials/query=domain.scatterholt.com/part-00001.parquet',
  ])
  await here.expectRows(DOMAINS)
  expect((await here.call('verify')).code).toBe(0)

  await here.write(parts({ partition_by: 'query' }))
  expect((await here.run('--fresh', '--yes')).summary).toMatchObject({ rows: 0, shards: 1 })
  expect(await shardPaths(here.output)).toHaveLength(1)
})

const retired = async (here: Workspace) =>
  statusShape.parse((await exits(0, here.json('status'))).value).retired

it.each(some([{}, { partition_by: 'none' }], 1))(
  'a domain removed from the file keeps its rows, is listed as retired and stops nothing: %j',
  async (load) => {
    const { windows } = FILE.extract
    const range = { from: windows.from, until: windows.until }
    const file = (domains: readonly string[]) => ({ extract: { domains, windows, page_size: 5 }, load })
    const here = await newWorkspace(file(DOMAINS))
    // One window of the removed domain is unfinished.
    await exits(4, here.run('--domain', 'quillmere.net', '--max-requests', '2'))
    await here.write(file(['scatterholt.com']))
    await exits(0, here.run())
    const [gone] = await retired(here)
    expect(gone).toMatchObject({ query: 'domain.quillmere.net' })
    expect(gone?.rows).toBeGreaterThan(0)
    expect((await here.manifest()).retired).toEqual([gone])
    expect((await here.call('status')).stdout).toContain('retired, kept: domain.quillmere.net')
    await exits(0, here.call('verify'))

    await here.write(file(DOMAINS))
    await exits(0, here.run())
    expect(await retired(here)).toEqual([])
    expect((await here.manifest()).retired).toEqual([])
    await here.expectRows(DOMAINS, range)
  },
)
