import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Format } from '../../src/core/index.ts'
import { allColumns } from '../../src/rows/index.ts'
import {
  type DdlInput,
  DIALECT_NAMES,
  DIALECTS,
  type DialectName,
  tableMounts,
} from '../../src/warehouse/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { sql } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { monthsUntil, newWorkspace } from '../support/workspace.ts'
import { CSV, inputOf } from './ddl-input.ts'
import { exportHere, loadHere } from './in-process.ts'
import { inDuckdb } from './targets.ts'

const statements = (name: DialectName, over: Partial<DdlInput> = {}): string =>
  DIALECTS[name].statements(inputOf(over))

/** A text with runs of lines that stand in another one replaced by their numbers there. */
function beside(text: string, other: string): string {
  const there = other.split('\n')
  const runs: (string | [first: number, last: number])[] = []
  for (const line of text.split('\n')) {
    const run = runs.at(-1)
    if (Array.isArray(run) && there[run[1]] === line) run[1]++
    else if (line === '' || !there.includes(line)) runs.push(line)
    else runs.push([there.indexOf(line) + 1, there.indexOf(line) + 1])
  }
  return runs.map((run) => (Array.isArray(run) ? `= ${run.join('-')}` : run)).join('\n')
}

/**
 * Written by the vendors' documented syntax. Those engines cannot be run here: the tests check that no statement changes
 * unnoticed and, in `statements-are-parsed`, that all are parsed. DuckDB's and PostgreSQL's are run below.
 */
describe.each(DIALECT_NAMES.filter((name) => name !== 'duckdb' && name !== 'postgres'))('%s', (name) => {
  it('is as recorded, and over CSV and with --sync as its difference, to Databricks with --sync as well', async () => {
    const columns = allColumns('credentials', ['auth_domains']).filter((column) => RECORDED.has(column.name))
    const [parquet, csv] = [inputOf({ columns }), inputOf({ columns, format: CSV })]
    // The others refuse it: `tables-follow-the-data-set`.
    const readsCsv = !PARQUET_ONLY.includes(name)
    const isRecorded = (text: string, what: string) =>
      expect(text).toMatchFileSnapshot(`statements/${name}-${what}`)
    const plain = DIALECTS[name].statements(parquet)
    await isRecorded(plain, name === 'dbt' ? 'parquet.yml' : 'parquet.sql')
    if (readsCsv) await isRecorded(beside(DIALECTS[name].statements(csv), plain), 'csv.txt')
    const { sync } = DIALECTS[name]
    if (sync === undefined) return
    const path = 'credentials/query=domain.acme.com/import_window=2024-01-01/part-00000.parquet'
    const shard = { path, rows: 13, bytes: 4096, sha256: 'ef9d3106', partitions: [], imported_at: null }
    const schemas = [columns]
    const manifest = { data_set_id: '3f8331a2-4911-48d5-b1d9-7717701f5294', shards: [shard] }
    const synced = sync({ ...parquet, manifest, schemas })
    const whole = DIALECTS.databricks.sync!({ ...parquet, manifest, schemas })
    await isRecorded(beside(synced, name === 'databricks' ? plain : `${plain}\n${whole}`), 'parquet-sync.txt')
    if (readsCsv) await isRecorded(beside(sync({ ...csv, manifest, schemas }), synced), 'csv-sync.txt')
  })
})

/** Engines whose CSV is another one than that of the shards. */
const PARQUET_ONLY: readonly DialectName[] = ['databricks', 'spark', 'trino', 'athena']

/** One of each type, null or not, and those that a dialect knows by name. */
const RECORDED = new Set([
  ...['id', 'hash', 'imported_at', 'source_is_alert_enabled', 'query_type', 'query_value', 'auth_domains'],
])

it.each(['snowflake', 'redshift', 'athena', 'trino', 'spark', 'clickhouse', 'duckdb'] as const)(
  '%s reads a data set in object storage in place',
  (name) => {
    const text = statements(name, { path: 's3://lake/acme' })
    expect(text).toMatch(/s3:\/\/lake\/acme|s3\('https:\/\/lake\.s3\.amazonaws\.com\/acme\/credentials/)
    expect(text).not.toContain('YOUR-BUCKET')
  },
)

it('databricks reads the Delta table in place', () => {
  const tables = { formats: ['iceberg', 'delta'], root: 's3://lake/acme', snapshots: 10 } as const
  const mounts = tableMounts('databricks', 'credentials', tables)
  expect(mounts).toEqual([expect.stringContaining("USING DELTA\nLOCATION 's3://lake/acme'")])
})

const loads = [
  { load: { format: 'parquet' } },
  { load: { format: 'parquet', partition_by: 'none' } },
  { load: { format: 'csv', compression: 'gzip' } },
]
it.each(some(loads, 2))('statements for DuckDB load every row, and mount files: $load', async ({ load }) => {
  const here = await newWorkspace({
    extract: {
      domains: ['scatterholt.com'],
      // From the middle of a day: a folder key that is not a date.
      windows: { from: '2024-01-01', until: '2024-03-01T06:00:00Z', every: 'month' },
      include: ['auth_domains'],
    },
    load,
  })
  await exits(0, here.run())
  const { stdout } = await exits(0, here.call('ddl', '--dialect', 'duckdb'))
  const { totals } = await here.manifest()
  await inDuckdb(join(here.folder, 'ddl.db'), async () => {
    await sql(stdout)
    for (const table of ['credentials', 'credentials_files']) {
      const [row] = await sql(
        `select count(*) as n, count(auth_domains) as lists, max(length(source_name)) as longest, count(imported_at) as times from ${table}`,
      )
      expect([Number(row?.n), Number(row?.times)]).toEqual([totals.rows, totals.rows])
      expect(Number(row?.longest)).toBeGreaterThan(0)
    }
    await sql('DELETE FROM credentials')
  })
  // A load takes the table.
  const loaded = await exits(0, here.json('load', '--to', 'duckdb:ddl.db'))
  expect(loaded.value).toMatchObject({ rows: totals.rows })
})

it('the statements for DuckDB read this data set alone, whatever the names of folders above it are', async () => {
  const path = 'domain=corp/query=x/acme[1]'
  const here = await newWorkspace({
    extract: { domains: ['scatterholt.com'], windows: monthsUntil('2024-03-01') },
    load: { path },
  })
  await exits(0, here.run())
  // What a pattern of that name would read.
  const other = join(here.folder, path.replace('[1]', '1'))
  await cp(join(here.folder, path), other, { recursive: true })
  await rm(join(other, 'credentials/query=domain.scatterholt.com'), { recursive: true })
  const { stdout } = await here.call('ddl', '--dialect', 'duckdb')
  await inDuckdb(join(here.folder, 'ddl.db'), async () => {
    await sql(stdout)
    const rows = await sql(
      "select distinct domain = 'corp' as other, query, import_window from credentials_files order by all",
    )
    const row = { other: false, query: 'domain.scatterholt.com' }
    expect(rows).toEqual(['2024-01-01', '2024-02-01'].map((import_window) => ({ ...row, import_window })))
  })
  await exits(0, here.call('query', 'select count(*) as n from credentials', '--json'))
  await exits(0, here.call('load', '--to', 'duckdb:leaks.db'))
})

it('a path that ClickHouse would read as a pattern is refused', () => {
  for (const path of ['/data/acme{1,2}', 's3://lake/a*'])
    expect(() => statements('clickhouse', { path, partitionBy: [] })).toThrow(/as a pattern/)
})

it.each([
  ['/data/acme', "'gs://YOUR-BUCKET/PREFIX/credentials/*.parquet'", 0],
  ['s3://lake/acme', "'s3://lake/acme/credentials/*.parquet'", 2],
  ['az://lake/acme', "'azure://YOUR-ACCOUNT.blob.core.windows.net/lake/acme/credentials/*.parquet'", 2],
])('BigQuery reads %s where it is, through a connection to other clouds', (path, uri, connections) => {
  const text = statements('bigquery', { path })
  expect(text).toContain(`uris = [${uri}]`)
  expect(text.split('WITH CONNECTION')).toHaveLength(connections + 1)
})

it('the statements for DuckDB read CSV with lines of any length, into a table of any name', async () => {
  const folder = scratchFolder()
  await mkdir(join(folder, 'reports'))
  const columns = allColumns('reports', []).filter(({ type }) => type === 'text')
  const long = 'x'.repeat(3_000_000)
  const [header, line] = [columns.map(({ name }) => name).join(','), columns.map(() => long).join(',')]
  await writeFile(join(folder, 'reports/part-00000.csv'), `${header}\n${line}\n`)
  const format = { ...CSV, compression: 'none' } as Format
  const of = { resource: 'reports', table: 'select "all"', columns, path: folder } as const
  await sql(statements('duckdb', { ...of, format, extension: '.csv', partitionBy: [] }))
  const [row] = await sql(`select min(length("${columns[0]!.name}")) as n from "select ""all"""`)
  expect(Number(row?.n)).toBe(long.length)
  await sql('drop view "select ""all""_files"; drop table "select ""all"""')
})

it('the statements for PostgreSQL create the table, with its comments, and a load takes it', async () => {
  const here = await newWorkspace({})
  const { stdout } = await here.call('ddl', '--dialect', 'postgres')
  const url = await newDatabase()
  await pgRows(url, stdout)
  const comments = await pgRows(
    url,
    `select a.attname as name, col_description(a.attrelid, a.attnum) as meaning from pg_attribute a
     where a.attrelid = 'credentials'::regclass and a.attnum > 0 order by a.attnum`,
  )
  expect(comments.map(({ name }) => name)).toContain('imported_at')
  expect(comments.every(({ meaning }) => typeof meaning === 'string' && meaning !== '')).toBe(true)
  await exportHere(here)
  expect(await loadHere(here, { url })).toMatchObject({ rows: (await here.manifest()).totals.rows })
})
