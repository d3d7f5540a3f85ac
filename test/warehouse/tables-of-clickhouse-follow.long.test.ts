import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ask } from '../open-tables/clickhouse/ask.ts'
import { readCsv } from '../support/read-shards.ts'
import type { Workspace } from '../support/workspace.ts'
import { changingDataSet, columnsIn, syncOf } from './following.ts'

/** The results of each statement, in a process that ends after the last. The tables stay. */
const session = ({ folder }: Workspace, statements: readonly string[]) =>
  ask(folder, statements, join(folder, 'clickhouse'))

/** Each column of the rows, as text. */
async function sums(here: Workspace): Promise<string> {
  return (await columnsIn(here)).map((name) => `toString(\`${name}\`)`).join(', ')
}

it('a table of ClickHouse has the rows of Parquet after each change, wherever a sync before it was stopped', async () => {
  const { here, changes } = await changingDataSet()
  for (const { name, happen } of changes) {
    await happen()
    const script = await syncOf(here, 'clickhouse')
    const copy = script.findIndex((statement) => statement.includes('INSERT INTO `credentials`'))
    const part = `${script[copy]} LIMIT 7`
    const stopped = [copy - 1, copy, copy + 1, copy + 2].flatMap((end) => script.slice(0, end))
    const columns = await sums(here)
    const asked = [
      `SELECT count(), sum(cityHash64(${columns})) FROM file('out/credentials/*/*.parquet', Parquet)`,
      `SELECT count(), sum(cityHash64(${columns})) FROM credentials`,
      'SELECT shard, sha256, rows FROM spillway_loads ORDER BY shard',
      'SELECT spillway_shard, count() FROM credentials GROUP BY 1 ORDER BY 1',
    ]
    const all = [...stopped, ...script.slice(0, copy), part, ...script, ...asked, ...script, ...asked]
    const answers = await session(here, all)
    const { shards } = await here.manifest()
    for (const [files, table, ledger, rows] of [
      answers.slice(-4),
      answers.slice(-4 - script.length - 4, -4 - script.length),
    ]) {
      expect(table, name).toEqual(files)
      expect(ledger, name).toEqual(shards.map(({ path, sha256, rows }) => [path, sha256, rows]))
      expect(rows, name).toEqual(shards.map(({ path, rows }) => [path, rows]))
    }
  }
})

it('a table of ClickHouse has the rows of CSV', async () => {
  const { here, changes } = await changingDataSet({ format: 'csv', partition_by: ['query', 'window'] })
  for (const { happen } of changes.slice(0, 3)) await happen()
  const answers = await session(here, [
    ...(await syncOf(here, 'clickhouse')),
    'SELECT toString(id), identity_name, hash, source_name, toString(auth_domains) FROM credentials ORDER BY id, query_value',
  ])
  const rows = (await readCsv(here.output)).toSorted(
    (a, b) => Number(a.id) - Number(b.id) || String(a.query_value).localeCompare(String(b.query_value)),
  )
  const table = answers.at(-1)!
  expect(table.map((row) => row.slice(0, 4))).toEqual(
    rows.map(({ id, identity_name, hash, source_name }) => [String(id), identity_name, hash, source_name]),
  )
})
