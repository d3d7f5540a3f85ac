/**
 * `npm run bench:kill`: rows and requests that `kill -9` costs. An export is killed after half of the requests that it
 * needs, then started again and runs to its end. The hand-written scripts of `npm run bench` start from the beginning.
 *
 *   --rows N   rows of each of four domains (50000)
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startSandbox } from '../dist/index.js'
import { CLI } from './measure.mjs'

const { values: options } = parseArgs({ options: { rows: { type: 'string', default: '50000' } } })

const DOMAINS = ['d0.example.com', 'd1.example.com', 'd2.example.com', 'd3.example.com']
const PAGE_ROWS = 10_000
const ROWS = Number(options.rows)
const MIN_REQUESTS = DOMAINS.length * Math.ceil(ROWS / PAGE_ROWS)
const SCRIPT = join(import.meta.dirname, 'peers/hand-written.mjs')

const CONTENDERS = {
  spillway: { start: startSpillway, rowsKept: committedRows },
  'fetch + zod + csv-stringify': { start: startScript('csv-stringify'), rowsKept: completeLines },
  'fetch + zod + hyparquet-writer': { start: startScript('hyparquet-writer'), rowsKept: rowsOfParquet },
}

const count = (number) => number.toLocaleString('en')
console.log(
  `| ${count(ROWS * DOMAINS.length)} rows, killed at request ${MIN_REQUESTS / 2} | rows on disk after the kill | requests in all | requests needed | requests repeated |`,
)
console.log('|---|---|---|---|---|')
for (const [name, { start, rowsKept }] of Object.entries(CONTENDERS)) {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
  const sandbox = await startSandbox({
    domains: DOMAINS,
    records: ROWS,
    token: 'bench',
    requestsPerSecond: 0,
    // The scripts do not handle rows without a source.
    nastyRate: 0,
    nullRate: 0,
  })
  try {
    await killAt(MIN_REQUESTS / 2, start(folder, sandbox), sandbox)
    const kept = await rowsKept(folder, sandbox)
    const [code] = await once(start(folder, sandbox), 'close')
    if (code !== 0) throw new Error(`${name} exited with ${code}`)
    const searches = sandbox.requests.length
    console.log(`| ${name} | ${count(kept)} | ${searches} | ${MIN_REQUESTS} | ${searches - MIN_REQUESTS} |`)
  } finally {
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function killAt(searches, child, sandbox) {
  const ended = once(child, 'close')
  while (sandbox.requests.length < searches && child.exitCode === null) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  if (child.exitCode !== null) throw new Error(`exited with ${child.exitCode} before it could be killed`)
  child.kill('SIGKILL')
  await ended
}

function startSpillway(folder, sandbox) {
  const file = join(folder, 'acme.yaml')
  writeFileSync(
    file,
    `name: acme
service: { base_url: "${sandbox.baseUrl}", requests_per_second: 10000 }
extract: { domains: [${DOMAINS}] }
load: { path: "${join(folder, 'out')}" }
`,
  )
  return node([CLI, 'run', file, '--no-progress'], folder)
}

function startScript(writer) {
  return (folder, sandbox) => node([SCRIPT, sandbox.baseUrl, String(DOMAINS.length), writer], folder)
}

function node(args, folder) {
  const env = { ...process.env, SPILLWAY_TOKEN: 'bench', BENCH_OUTPUT: join(folder, 'out') }
  return spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Rows that the next run does not request again. */
async function committedRows(folder) {
  const status = spawn(process.execPath, [CLI, 'status', join(folder, 'acme.yaml'), '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  for await (const chunk of status.stdout) text += chunk
  return JSON.parse(text).totals.rows
}

/** Complete lines; the last one is torn. The script cannot resume after them: the file holds no cursor. */
function completeLines(folder) {
  const file = join(folder, 'out/rows.csv')
  return existsSync(file) ? Math.max(0, readFileSync(file, 'utf8').split('\n').length - 2) : 0
}

/** All rows or none: a Parquet file is not readable without its footer, which is written last. */
function rowsOfParquet(folder) {
  return existsSync(join(folder, 'out/rows.parquet')) ? ROWS * DOMAINS.length : 0
}
