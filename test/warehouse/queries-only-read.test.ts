import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { treeHashes } from '../fault/support.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { shardPaths } from '../support/read-shards.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { monthsUntil, newWorkspace, type Workspace } from '../support/workspace.ts'
import { exportHere, queryHere, refusalOf } from './in-process.ts'

const PARTS = { extract: { domains: ['scatterholt.com'], windows: monthsUntil('2024-03-01') } }

const exported = (): Promise<Workspace> => exportedWorkspace(PARTS)

it('a statement that is not one SELECT, or EXPLAIN of one, is refused, and whatever is asked, no file changes', async () => {
  const here = await exported()
  const [shard] = (await shardPaths(here.output)).map((path) => join(here.output, path))
  await mkdir(join(here.output, '_quarantine'), { recursive: true })
  await writeFile(join(here.output, '_quarantine/a.jsonl'), '{"item":1}\n')
  await writeFile(join(here.folder, 'other.csv'), 'a\n1\n')
  const before = await treeHashes(here.folder)
  const refused = [
    `EXPLAIN ANALYZE COPY (SELECT 1) TO '${here.output}/_manifest.json'`,
    `EXPLAIN ANALYZE COPY (SELECT 1) TO '${shard}'`,
    `EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 1) TO '${shard}'`,
    ...[`explain /* */ analyze -- COPY\n COPY (SELECT 1) TO '${shard}'`, `COPY (SELECT 1) TO '${shard}'`],
    `COPY credentials TO '${here.folder}/stolen.csv'`,
    ...[`EXPLAIN COPY credentials TO '${here.folder}/stolen.csv'`, 'CREATE TABLE t AS SELECT 1'],
    ...['PREPARE p AS SELECT 1', 'SET memory_limit = 1', 'RESET memory_limit'],
    ...['SET enable_external_access = true', "ATTACH 'other.db'", `EXPORT DATABASE '${here.folder}/dump'`],
    ...['INSTALL httpfs', "PRAGMA enable_profiling = 'json'", 'CALL pragma_version()', 'CHECKPOINT'],
    ...['DROP VIEW credentials', 'SELECT 1; SELECT 2', 'SELECT 1; DROP VIEW credentials', 'SELEC', ''],
    ...[' \n', '-- nothing', ';'],
    // Every file but the shards.
    `SELECT * FROM read_text('${here.output}/_manifest.json')`,
    `SELECT * FROM read_csv('${here.output}/_state/checkpoint.jsonl')`,
    `SELECT * FROM read_json('${here.output}/_quarantine/a.jsonl')`,
    `SELECT * FROM read_csv('${here.output}/_quarantine/a.jsonl')`,
    `SELECT * FROM read_csv('${here.output}/credentials/../_quarantine/a.jsonl')`,
    `SELECT * FROM '${here.folder}/other.csv'`,
    `SELECT * FROM read_csv('${here.folder}/other.csv')`,
    `SELECT * FROM read_parquet('${here.output}/credentials/**/*.parquet')`,
    `SELECT * FROM glob('${here.output}/**')`,
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv('https://203.0.113.1/a.csv')",
  ]
  for (const sql of THOROUGH ? refused : some(refused, 18)) {
    const { kind } = await refusalOf(here, sql)
    expect({ sql, kind }).toEqual({ sql, kind: 'config' })
  }
  expect((await refusalOf(here, '-- nothing')).what).toBe('The SQL is empty')
  // What these change is the memory of a DuckDB that ends with the query.
  const harmless = [
    'EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1',
    'EXPLAIN ANALYZE DROP VIEW credentials',
    'CREATE TABLE t AS SELECT 1; SELECT 1',
    `SELECT * FROM enable_logging(storage = 'file', storage_path = '${here.output}')`,
    `SELECT * FROM enable_profiling(format = 'json', save_location = '${here.output}/_report.json')`,
    `SELECT 1 WHERE EXISTS (FROM system.main."Enable_Profiling"())`,
    'WITH a AS MATERIALIZED (FROM checkpoint()) FROM a',
    "SELECT * FROM query('SELECT * FROM force_checkpoint()')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
  ]
  for (const sql of some(harmless, 4)) await queryHere(here, sql).catch(() => {})
  expect(await treeHashes(here.folder)).toEqual(before)
})

it('statements that only read give rows', async () => {
  const here = await exported()
  const [shard] = await shardPaths(here.output)
  const allowed = [
    ...['SELECT count(*) AS n FROM credentials', '(SELECT count(*) AS n FROM credentials);'],
    'FROM credentials SELECT count(*) AS n -- EXPLAIN COPY',
    "WITH a AS (SELECT 'COPY; EXPLAIN' AS text FROM credentials) SELECT count(text) AS n FROM a",
    ...['EXPLAIN SELECT * FROM credentials', 'explain analyze SELECT count(*) FROM credentials'],
    ...['EXPLAIN (FORMAT json) (SELECT 1)', 'DESCRIBE credentials', 'SHOW TABLES'],
    ...["PRAGMA table_info('credentials')", 'SUMMARIZE credentials', 'SELECT * FROM range(3)'],
    'PIVOT credentials ON hash_type IN (md5) USING count(*) GROUP BY domain',
    'PIVOT credentials ON hash_type USING count(*) GROUP BY domain',
    `SELECT count(*) AS n FROM read_parquet('${join(here.output, shard!)}')`,
  ]
  for (const sql of THOROUGH ? allowed : some(allowed, 8))
    expect({ sql, rows: (await queryHere(here, sql)).rows.length }).not.toEqual({ sql, rows: 0 })
})

it('a loaded database is not changed either, and no other file is read', async () => {
  const here = await newWorkspace(PARTS)
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(join(here.folder, 'leaks.db'))
  const connection = await instance.connect()
  await connection.run('CREATE TABLE credentials AS SELECT 1 AS id')
  connection.closeSync()
  instance.closeSync()
  await writeFile(join(here.folder, 'other.csv'), 'a\n1\n')
  const before = await treeHashes(here.folder)
  const database = 'duckdb:leaks.db'
  for (const sql of [
    `EXPLAIN ANALYZE COPY (SELECT 1) TO '${here.folder}/stolen.csv'`,
    `SELECT * FROM read_csv('${here.folder}/other.csv')`,
    'DELETE FROM credentials',
  ]) {
    expect((await refusalOf(here, sql, database)).kind).toBe('config')
  }
  expect((await queryHere(here, 'FROM credentials', database)).rows).toEqual([[1]])
  const pivot = 'PIVOT credentials ON id USING count(*)'
  expect((await queryHere(here, pivot, database)).rows).toEqual([[1]])
  expect(await treeHashes(here.folder)).toEqual(before)
})

it('a query larger than memory spills to a folder of its own, which is removed afterwards', async () => {
  const here = await exported()
  const { rows } = await queryHere(here, "SELECT current_setting('temp_directory')")
  const temporary = String(rows[0]?.[0])
  expect(temporary).toMatch(/spillway-tmp-\w+$/)
  expect(existsSync(temporary)).toBe(false)
})

it.each([
  ['missing', (shard: string) => rm(shard)],
  ['short', (shard: string) => truncate(shard, 100)],
  ['damaged', async (shard: string) => writeFile(shard, Buffer.alloc((await readFile(shard)).length))],
] as const)('the error about a %s shard names it, and the next step', async (_, damage) => {
  const here = await exported()
  const [, path] = await shardPaths(here.output)
  await damage(join(here.output, path!))
  const { kind, where, next } = await refusalOf(here, 'FROM credentials')
  expect([kind, next]).toEqual(['damaged', expect.stringContaining('`verify`')])
  expect(where).toContain(path)
})

async function fewRows() {
  const here = await newWorkspace({}, { records: 5 })
  await exportHere(here)
  const refusal = (sql: string) => refusalOf(here, sql)
  const { rows } = await queryHere(here, 'SELECT DISTINCT identity_name FROM credentials')
  return { here, refusal, names: rows.map(([name]) => String(name)) }
}

it('an error of DuckDB about a row shows its kind and the position in the SQL, never the value', async () => {
  const { refusal, names } = await fewRows()
  expect(names.length).toBeGreaterThan(0)
  const statements: Readonly<Record<string, RegExp>> = {
    'SELECT identity_name::INT FROM credentials': /Conversion Error at character 21 of the SQL/,
    'SELECT error(identity_name) FROM credentials': /Invalid Input Error/,
    "SELECT strptime(identity_name, '%Y') FROM credentials": /Invalid Input Error/,
    'SELECT id * 9223372036854775807 FROM credentials WHERE id > 1': /Out of Range Error/,
  }
  for (const [sql, told] of Object.entries(statements)) {
    const error = await refusal(sql)
    expect(error.kind).toBe('config')
    expect(error.message).toMatch(told)
    // Some programs print the cause as well.
    for (const name of names) expect(inspect(error)).not.toContain(name)
  }
})

it('an error in the SQL shows its kind, its position and similar names', async () => {
  const { refusal } = await fewRows()
  const statements: Readonly<Record<string, RegExp>> = {
    'SELECT identity FROM credentials':
      /Binder Error at character 8 of the SQL; similar names: .*identity_name/,
    'SELECT 1 FROM credential': /Catalog Error at character 15 of the SQL; similar names: credentials/,
    'SELECT * FRM credentials': /Parser Error at character 14 of the SQL/,
    'SELECT id, count(*) FROM credentials': /Binder Error at character 8 of the SQL/,
  }
  for (const [sql, told] of Object.entries(statements)) expect((await refusal(sql)).message).toMatch(told)
})

it('texts of the SQL are not repeated, however they are quoted', async () => {
  const { refusal } = await fewRows()
  const statements = [
    'SELECT * FROM credentials WHERE hash = "hunter2"',
    "SELECT * FROM credentials WHERE hash = 'hunter2",
    "SELECT * FROM credentials WHERE hash = 'x' 'hunter2' FRM",
    "SELECT json_extract(hash, '$.hunter2..') FROM credentials",
    "SELECT COLUMNS('hunter2') FROM credentials",
    'SELECT * FROM credentials WHERE hash = $$hunter2$$ AND',
    "SELECT * -- it's\nFROM 'hunter2' x",
    "SELECT * FROM credentials WHERE hash = E'\\x68unter2' AND",
    'SELECT "it""s hunter2" FROM credentials',
  ]
  for (const sql of THOROUGH ? statements : some(statements, 7)) {
    const { message } = await refusal(sql)
    expect(message, sql).toMatch(/^(?:DuckDB does not|Only SELECT)/)
    expect(message.toLowerCase(), sql).not.toContain('hunter2')
  }
})

it('stderr contains no value, at any level', async () => {
  const { here, names } = await fewRows()
  const sql = 'SELECT identity_name::INT FROM credentials'
  const { code, stderr } = await here.call('query', sql, '--log-level', 'debug')
  expect(code).toBe(2)
  expect(stderr).toContain('Conversion Error')
  for (const name of names) expect(stderr).not.toContain(name)
})
