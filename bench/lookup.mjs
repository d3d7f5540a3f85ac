/**
 * `npm run bench:lookup`: DuckDB looks up one identity in an export, with and without a bloom filter on
 * `identity_name`. Medians of nine look-ups in one process.
 *
 *   --rows N   rows (5000000)
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import { CLI, median, pageServer, writePipeline } from './measure.mjs'

const { values: options } = parseArgs({ options: { rows: { type: 'string', default: '5000000' } } })
const PARTITIONS = 5
const folder = mkdtempSync(join(tmpdir(), 'spillway-lookup-'))
const server = await pageServer('typical', Math.ceil(Number(options.rows) / 10_000 / PARTITIONS))
try {
  console.log('| bloom filter | identity with one row, ms | identity without rows, ms |')
  console.log('|---|---|---|')
  for (const bloom of [false, true]) {
    const output = join(folder, String(bloom))
    const { file, env } = writePipeline(folder, server.url, PARTITIONS, { bloom })
    const run = spawnSync(process.execPath, [CLI, 'run', file], {
      env: { ...process.env, ...env, BENCH_OUTPUT: output },
      encoding: 'utf8',
    })
    if (run.status !== 0) throw new Error(run.stderr)
    const [found, missing] = await lookUps(`${output}/credentials/*/*/*.parquet`)
    console.log(`| ${bloom ? 'yes' : 'no'} | ${found.toFixed(0)} | ${missing.toFixed(0)} |`)
  }
} finally {
  server.stop()
  rmSync(folder, { recursive: true, force: true })
}

async function lookUps(files) {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
  const connection = await instance.connect()
  const find = (name) => `SELECT count(*) FROM read_parquet('${files}') WHERE identity_name = '${name}'`
  const medians = []
  // The first identity of each page occurs in no other page.
  for (const name of ['page-7@d3.example.com', 'nobody@example.com']) {
    const times = []
    for (let time = 0; time < 9; time++) {
      const started = performance.now()
      const [[found]] = (await connection.runAndReadAll(find(name))).getRows()
      if (Number(found) !== (name.startsWith('page-') ? 1 : 0))
        throw new Error(`${name} was found ${found} times`)
      times.push(performance.now() - started)
    }
    medians.push(median(times))
  }
  connection.closeSync()
  instance.closeSync()
  return medians
}
