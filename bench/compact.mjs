/**
 * `npm run bench:compact`: a feed of a year of nights, before and after `compact`: what it takes to count the rows by DuckDB
 * over the bare files, to load them into an empty DuckDB file and into one that is loaded, and to say the status; files,
 * and bytes of metadata. The year is one run whose shards have the rows of a night. Each figure is a separate process.
 *
 *   --nights N         shards of each feed (365)
 *   --identifiers N    feeds (50)
 *   --rows N           rows of each feed and night (5)
 *   --format F         parquet or csv
 */
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startSandbox } from '../build/parts/sandbox.js'
import { CLI, measure } from './measure.mjs'

const { values } = parseArgs({
  options: {
    nights: { type: 'string', default: '365' },
    identifiers: { type: 'string', default: '50' },
    rows: { type: 'string', default: '5' },
    format: { type: 'string', default: 'parquet' },
  },
})
const [nights, identifiers, rows] = [values.nights, values.identifiers, values.rows].map(Number)
const DUCKDB = join(import.meta.dirname, 'peers/duckdb-load.mjs')
const DAY_MS = 86_400_000
const BEGIN_MS = Date.parse('2024-01-01')

const folder = mkdtempSync(join(tmpdir(), 'spillway-compact-'))
const output = join(folder, 'out')
const tables = values.format === 'parquet' ? ', table_formats: [iceberg, delta]' : ''
const sandbox = await startSandbox({
  records: rows * nights,
  from: '2024-01-01',
  until: new Date(BEGIN_MS + nights * DAY_MS).toISOString(),
  domains: Array.from({ length: identifiers }, (_, n) => `d${n}.example.com`),
  nastyRate: 0,
  requestsPerSecond: 0,
  basicRequestsPerSecond: 0,
  now: () => BEGIN_MS + nights * DAY_MS,
})
try {
  const file = writePipeline(`, shard_rows: ${rows}`)
  const run = await measure(CLI, ['run', file], { SPILLWAY_TOKEN: sandbox.token })
  writePipeline(tables)
  if (tables !== '') await measure(CLI, ['tables', file])
  console.log(
    `${nights} nights × ${identifiers} feeds × ${rows} rows, ${values.format}; the run ${cpu(run)} CPU s\n`,
  )
  const before = await figures(file)
  const compact = await measure(CLI, ['compact', file])
  const after = await figures(file)
  console.log('| | before | after |\n|---|---|---|')
  for (const [name, value] of Object.entries(before)) console.log(`| ${name} | ${value} | ${after[name]} |`)
  console.log(
    `| \`compact\` itself, CPU s; peak MB | ${cpu(compact)}; ${compact.peakMegabytes.toFixed(0)} | |`,
  )
} finally {
  await sandbox.close()
  rmSync(folder, { recursive: true, force: true })
}

function writePipeline(more) {
  const file = join(folder, 'nightly.yaml')
  const ids = Array.from({ length: identifiers }, (_, n) => n + 1)
  writeFileSync(
    file,
    `name: nightly
service: { base_url: '${sandbox.baseUrl}', requests_per_second: 10000 }
extract: { resource: feed, identifiers: [${ids}], max_requests: none }
load: { path: '${output}', partition_by: [query], format: ${values.format}${more} }
`,
  )
  return file
}

async function figures(file) {
  const glob = join(output, `credentials/**/*.${values.format}`)
  const count = `SELECT count(*) FROM read_${values.format}('${glob}', hive_partitioning = false)`
  const database = join(folder, 'leaks.db')
  rmSync(database, { force: true })
  const counted = await measure(DUCKDB, [':memory:', count])
  const status = await measure(CLI, ['status', file, '--json'])
  const load = await measure(CLI, ['load', file, '--to', `duckdb:${database}`])
  // Loaded before the compaction.
  const loaded = join(folder, 'loaded.db')
  if (!existsSync(loaded)) copyFileSync(database, loaded)
  const again = await measure(CLI, ['load', file, '--to', `duckdb:${loaded}`])
  const files = readdirSync(output, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  const isMetadata = (path) => path.slice(output.length).startsWith('/_')
  const shards = files.filter((path) => !isMetadata(path))
  return {
    files: shards.length,
    'MB of them': megabytes(shards),
    '`count(*)` by DuckDB, s; CPU s': `${counted.wallSeconds.toFixed(2)}; ${cpu(counted)}`,
    '`load` into an empty DuckDB file, s; CPU s': `${load.wallSeconds.toFixed(1)}; ${cpu(load)}`,
    '`load` into one that is loaded, s; CPU s': `${again.wallSeconds.toFixed(1)}; ${cpu(again)}`,
    '`status`, s; CPU s': `${status.wallSeconds.toFixed(2)}; ${cpu(status)}`,
    'MB of metadata, in files': `${megabytes(files.filter(isMetadata))}, ${files.filter(isMetadata).length}`,
    'MB of the manifest': megabytes([join(output, '_manifest.json')]),
  }
}

function megabytes(paths) {
  return (paths.reduce((sum, path) => sum + statSync(path).size, 0) / 1e6).toFixed(2)
}

function cpu({ cpuSeconds }) {
  return cpuSeconds.toFixed(2)
}
