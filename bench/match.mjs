/**
 * `npm run bench:match`: `match` of a directory against an export, under `identity: keep` and `hmac`, from Parquet and
 * CSV. Half of the people are in the export, in upper case. Each is a process; the result goes to a file.
 *
 *   --people N   people (100000)
 *   --rows N     rows (1000000)
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import { CLI, measure, pageServer, writePipeline } from './measure.mjs'

const { values: options } = parseArgs({
  options: { people: { type: 'string', default: '100000' }, rows: { type: 'string', default: '1000000' } },
})
const PARTITIONS = 5
const folder = mkdtempSync(join(tmpdir(), 'spillway-match-'))
const server = await pageServer('typical', Math.ceil(Number(options.rows) / 10_000 / PARTITIONS))
try {
  console.log('| identity | format | s | CPU s | MB | rows of the result |')
  console.log('|---|---|---|---|---|---|')
  const directory = join(folder, 'people.csv')
  for (const identity of ['keep', 'hmac']) {
    for (const format of ['parquet', 'csv']) {
      const output = join(folder, `${identity}-${format}`)
      const env = exported(output, identity, format)
      if (identity === 'keep' && format === 'parquet') await writeDirectory(directory, output)
      const result = join(folder, 'result.csv')
      const args = ['match', output, '--directory', directory, '--format', 'csv', '--output', result]
      const { wallSeconds, cpuSeconds, peakMegabytes } = await measure(CLI, args, env)
      const rows = readFileSync(result, 'utf8').split('\n').length - 2
      console.log(
        `| ${identity} | ${format} | ${wallSeconds.toFixed(1)} | ${cpuSeconds.toFixed(1)} | ${peakMegabytes.toFixed(0)} | ${rows} |`,
      )
    }
  }
} finally {
  server.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** @returns the variables of commands on it */
function exported(output, identity, format) {
  const { file, env } = writePipeline(folder, server.url, PARTITIONS, { format })
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace('secret: redact', `secret: redact, identity: ${identity}`),
  )
  const run = spawnSync(process.execPath, [CLI, 'run', file], {
    env: { ...process.env, ...env, BENCH_OUTPUT: output },
    encoding: 'utf8',
  })
  if (run.status !== 0) throw new Error(run.stderr)
  return env
}

async function writeDirectory(file, output) {
  const people = Number(options.people)
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const sql = `SELECT DISTINCT identity_name FROM read_parquet('${output}/credentials/*/*/*.parquet') LIMIT ${people / 2}`
  const found = (await connection.runAndReadAll(sql)).getRows()
  connection.closeSync()
  instance.closeSync()
  const lines = Array.from({ length: people }, (_, i) => {
    const address = String(found[i]?.[0] ?? `somebody.${i}@elsewhere.example`).toUpperCase()
    return `${i},Person ${i},${address},SMTP:${address};smtp:alias${i}@elsewhere.example`
  })
  writeFileSync(file, `employeeId,displayName,mail,proxyAddresses\n${lines.join('\n')}\n`)
}
