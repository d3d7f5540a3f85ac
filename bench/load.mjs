/**
 * `npm run bench:load`: `load` into DuckDB and PostgreSQL, compared with commands of the databases: `CREATE TABLE AS`
 * and `COPY` over the same Parquet files, and psql's `\copy` of the same rows as CSV, with the indexes that `load`
 * creates (skipped if psql is not installed). Each contender is a process that loads into an empty database. All
 * contenders run once in each round; figures are medians. PostgreSQL is the server of the tests (fsync is off).
 *
 *   --rows N       rows (500000)
 *   --rounds N     rounds (5)
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { PASSWORD, startPostgres } from '../test/support/postgres/server.mjs'
import { CLI, measure, median, pageServer, writePipeline } from './measure.mjs'

const { values: options } = parseArgs({
  options: { rows: { type: 'string', default: '500000' }, rounds: { type: 'string', default: '5' } },
})
const PARTITIONS = 5
const DUCKDB = join(import.meta.dirname, 'peers/duckdb-load.mjs')
const ENV = { PGPASSWORD: PASSWORD, SPILLWAY_TOKEN: 'bench' }

const folder = mkdtempSync(join(tmpdir(), 'spillway-load-'))
const files = join(folder, 'out/credentials/*/*/*.parquet')
const parquet = `read_parquet('${files}', hive_partitioning = false)`
const csv = join(folder, 'rows.csv')
const pages = Math.ceil(Number(options.rows) / 10_000 / PARTITIONS)
const rows = pages * 10_000 * PARTITIONS
const postgres = await startPostgres()
try {
  const pipeline = await exportRows()
  const load = (target) => measure(CLI, ['load', pipeline, '--to', target], ENV)
  const database = await postgres.database()
  await load(database)
  const hasPsql = spawnSync('psql', ['--version']).status === 0
  if (hasPsql) psql(database, `\\copy credentials TO '${csv}' WITH (FORMAT csv)`)

  const copied = `CREATE TABLE credentials AS SELECT * FROM ${parquet} LIMIT 0; COPY credentials FROM '${files}'`
  const contenders = {
    'DuckDB | `load`': () => load(`duckdb:${newFile()}`),
    'DuckDB | `CREATE TABLE AS`': () => duckdb(`CREATE TABLE credentials AS SELECT * FROM ${parquet}`),
    'DuckDB | `COPY`': () => duckdb(copied),
    'PostgreSQL | `load`': async () => {
      const target = await postgres.database()
      return withServer(() => load(target))
    },
  }
  if (hasPsql) {
    contenders['PostgreSQL | `\\copy`, then the indexes'] = () => copyIn(database, 'after')
    contenders['PostgreSQL | `\\copy`, the indexes first'] = () => copyIn(database, 'before')
  }
  const runs = new Map(Object.keys(contenders).map((name) => [name, []]))
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [name, run] of Object.entries(contenders)) runs.get(name).push(await run())
  }
  console.log(
    `| ${rows.toLocaleString('en')} rows into | by | s | rows/s | CPU s | peak MB | CPU s of the server |`,
  )
  console.log('|---|---|---|---|---|---|---|')
  for (const [name, each] of runs) console.log(`| ${name} | ${cells(each).join(' | ')} |`)
  if (!hasPsql) console.log('\npsql is not installed: no comparison for PostgreSQL.')
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** Exports the data set. @returns the pipeline file */
async function exportRows() {
  const server = await pageServer('typical', pages)
  try {
    const { file, env } = writePipeline(folder, server.url, PARTITIONS, {})
    // BENCH_OUTPUT differs between processes, and all of them read this data set.
    const text = readFileSync(file, 'utf8').replace(/path: "[^"]*"/, `path: "${join(folder, 'out')}"`)
    writeFileSync(file, text)
    await measure(CLI, ['run', file], env)
    return file
  } finally {
    server.stop()
  }
}

function newFile() {
  const file = join(folder, 'rows.db')
  rmSync(file, { force: true })
  return file
}

function duckdb(sql) {
  return measure(DUCKDB, [newFile(), sql])
}

/** Copies the CSV file into a table like the one that `load` creates. Measures one psql process. */
function copyIn(database, indexes) {
  psql(database, 'DROP TABLE IF EXISTS peer', 'CREATE TABLE peer (LIKE credentials)')
  const columns = ['identity_name', 'domain', 'imported_at', 'spillway_shard']
  const createIndexes = columns.map((column) => `CREATE INDEX ON peer (${column})`)
  if (indexes === 'before') psql(database, ...createIndexes)
  return withServer(() => {
    const started = performance.now()
    psql(
      database,
      `\\copy peer FROM '${csv}' WITH (FORMAT csv)`,
      ...(indexes === 'after' ? createIndexes : []),
    )
    return { wallSeconds: (performance.now() - started) / 1000 }
  })
}

/** Adds the CPU time of the server processes that `work` used; NaN on systems without `/proc`. */
async function withServer(work) {
  const before = await serverSeconds()
  const measured = await work()
  return { ...measured, serverSeconds: (await serverSeconds()) - before }
}

async function serverSeconds() {
  const file = `/proc/${postgres.pid}/stat`
  if (!existsSync(file)) return Number.NaN
  // The server process of the last connection exits within this time.
  await wait(500)
  const [, figures] = readFileSync(file, 'utf8').split(') ')
  const [user, system] = figures.split(' ').slice(13, 15)
  return (Number(user) + Number(system)) / 100
}

function psql(database, ...statements) {
  const args = [database, '-q', '-v', 'ON_ERROR_STOP=1', ...statements.flatMap((sql) => ['-c', sql])]
  const { status, stderr } = spawnSync('psql', args, { env: { ...process.env, ...ENV }, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}

function cells(runs) {
  const cell = (figure, digits) => {
    const values = runs.map((run) => run[figure]).filter(Number.isFinite)
    return values.length === 0 ? '' : median(values).toFixed(digits)
  }
  const perSecond = rows / median(runs.map(({ wallSeconds }) => wallSeconds))
  return [
    cell('wallSeconds', 1),
    `${Math.round(perSecond / 1000)}k`,
    cell('cpuSeconds', 1),
    cell('peakMegabytes', 0),
    cell('serverSeconds', 1),
  ]
}
