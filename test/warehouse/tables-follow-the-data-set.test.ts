import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DuckDBInstance, type JS } from '@duckdb/node-api'
import { expect, it } from 'vitest'
import { literal } from '../../src/warehouse/table/table.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'
import { changingDataSet, columnsIn, syncOf } from './following.ts'
import { loadHere } from './in-process.ts'

/** The results of the last statement, in a session that ends after it. */
async function session(here: Workspace, statements: readonly string[]): Promise<Record<string, JS>[]> {
  const database = await DuckDBInstance.create(join(here.folder, 'leaks.db'), { threads: '1' })
  const connection = await database.connect()
  try {
    let rows: Record<string, JS>[] = []
    for (const statement of statements) rows = (await connection.runAndReadAll(statement)).getRowObjectsJS()
    return rows
  } finally {
    connection.closeSync()
    database.closeSync()
  }
}

/** The table has the rows of the data set, each with the path of its shard; the ledger has its shards. */
async function expectRows(here: Workspace): Promise<void> {
  const { shards, totals, data_set_id } = await here.manifest()
  const files = `[${(await shardPaths(here.output)).map((path) => literal(join(here.output, path)))}]`
  const reader = `read_parquet(${files}, hive_partitioning = false, filename = true)`
  const columns = (await columnsIn(here)).map((name) => `"${name}"`).join(', ')
  const mine = `SELECT ${columns}, spillway_shard AS shard FROM credentials WHERE spillway_data_set = '${data_set_id}'`
  const theirs = `SELECT ${columns}, filename[${here.output.length + 2}:] AS shard FROM ${reader}`
  const [counted] = await session(here, [
    `SELECT count(*)::int AS rows, (SELECT count(*)::int FROM (${mine} EXCEPT ALL ${theirs})) AS too_many, (SELECT count(*)::int FROM (${theirs} EXCEPT ALL ${mine})) AS missing FROM credentials`,
  ])
  expect(counted).toEqual({ rows: totals.rows, too_many: 0, missing: 0 })
  const entries = await session(here, [
    'SELECT shard, sha256, rows::int AS rows FROM spillway_loads ORDER BY shard',
  ])
  expect(entries).toEqual(shards.map(({ path, sha256, rows }) => ({ shard: path, sha256, rows })))
}

/** Brings the table in line. @returns the ledger after it */
async function sync(here: Workspace): Promise<Record<string, JS>[]> {
  await session(here, await syncOf(here, 'duckdb'))
  await expectRows(here)
  return session(here, ['SELECT * FROM spillway_loads ORDER BY shard'])
}

it.each(THOROUGH ? [0, 1] : [0])(
  'load and the script, also one that was stopped, bring a table in line after each change, %i',
  async (turn) => {
    const { here, changes } = await changingDataSet()
    const load = () => loadHere(here, { url: `duckdb:${join(here.folder, 'leaks.db')}` })
    for (const [i, { happen }] of changes.entries()) {
      await happen()
      if (i % 2 === turn) {
        const script = await syncOf(here, 'duckdb')
        const stops = THOROUGH ? script.keys() : [script.length - 4 - (i % 3)]
        for (const stop of stops) await session(here, script.slice(0, stop))
        await sync(here)
        expect(await load()).toMatchObject({ shards: { loaded: 0, replaced: 0 }, removed: 0 })
      } else {
        await load()
        await expectRows(here)
        const ledger = await sync(here)
        expect(await sync(here)).toEqual(ledger)
      }
    }
    await session(here, ['DELETE FROM credentials WHERE id IN (SELECT min(id) FROM credentials)'])
    await sync(here)
  },
)

it('where a shard or the manifest is missing, the script fails, and no row is lost', async () => {
  const { here, changes } = await changingDataSet()
  await changes[0]!.happen()
  await sync(here)
  await changes[1]!.happen()
  const { shards } = await here.manifest()
  const added = join(here.output, shards.find(({ path }) => path.includes('part-00001'))!.path)
  await rename(added, `${added}.away`)
  await expect(session(here, await syncOf(here, 'duckdb'))).rejects.toThrow('not every shard is loaded')
  await rename(`${added}.away`, added)
  const script = await syncOf(here, 'duckdb')
  await sync(here)
  await writeFile(join(here.output, '_manifest.json'), 'nothing')
  await expect(session(here, script)).rejects.toThrow('not every shard is loaded')
  const [left] = await session(here, ['SELECT count(*)::int AS rows FROM credentials'])
  expect(left!.rows).toBeGreaterThan(0)
})

it.each([
  ['postgres', /`spillway load` does that/],
  ['spark', /read the files as they are. It is for duckdb, snowflake/],
])('%s has no such script: exit 2', async (dialect, next) => {
  const here = await exportedWorkspace({})
  await exits(2, here.call('ddl', '--dialect', dialect, '--sync'), next)
})

it('an engine that reads another CSV is refused with the line of the format: exit 2', async () => {
  const here = await newWorkspace({ load: { format: 'csv' } })
  const says = /does not read CSV.*\(load\.format, pipeline\.yaml:\d+:\d+\)\. Export Parquet/
  for (const dialect of ['spark', 'trino', 'athena', 'databricks'])
    await exits(2, here.call('ddl', '--dialect', dialect), says)
})

it('before a run there is nothing to bring a table in line with', async () => {
  const here = await newWorkspace({})
  await exits(2, here.call('ddl', '--dialect', 'duckdb', '--sync'), 'there is no manifest')
})
