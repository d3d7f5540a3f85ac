/**
 * `npm run bench:start`: CPU time that commands take before they have work, and its difference to an idle Node.js
 * process (`node -e 0`). Each round measures every command once, so that changes of the machine's speed affect all
 * commands. Figures are medians of the rounds, and medians of the differences by round.
 *
 *   --rounds N   rounds (11)
 *   --rows N     rows of the finished data set, which is exported first (2000000)
 *   --only TEXT  commands whose name contains the text
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CLI, measure, median, pageServer } from './measure.mjs'

const PAGE_ROWS = 10_000

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '11' },
    rows: { type: 'string', default: '2000000' },
    only: { type: 'string', default: '' },
  },
})

const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
const file = join(folder, 'small.yaml')
let onRequest = () => {}
// Sends no response: the measurement ends with the first request.
const server = createServer(() => onRequest())
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
writeFileSync(
  file,
  `name: small
service: { base_url: "http://127.0.0.1:${server.address().port}/firework" }
extract:
  domains: [a.example.com, b.example.com]
  windows: { from: 2024-01-01, until: 2024-07-01, every: month }
load: { path: "${join(folder, 'out')}" }
`,
)
const ENV = { SPILLWAY_TOKEN: 'bench' }
const finished = await exportFinished(Number(options.rows))
const cpuOf = async (script, ...args) => (await measure(script, args, ENV)).cpuSeconds

const BARE = 'node -e 0'
const contenders = Object.entries({
  [BARE]: () => cpuOf('-e', '0'),
  '--version': () => cpuOf(CLI, '--version'),
  '--help': () => cpuOf(CLI, '--help'),
  'run --help': () => cpuOf(CLI, 'run', '--help'),
  status: () => cpuOf(CLI, 'status', file),
  plan: () => cpuOf(CLI, 'plan', file),
  'run, to its first request': toFirstRequest,
  'status, all done': () => cpuOf(CLI, 'status', finished),
  'plan, all done': () => cpuOf(CLI, 'plan', finished),
  'run, nothing to do': () => cpuOf(CLI, 'run', finished, '--no-progress'),
}).filter(([name]) => name === BARE || name.includes(options.only))

try {
  const rounds = []
  for (let round = 0; round < Number(options.rounds); round++) {
    const times = {}
    for (const [name, cpuSeconds] of contenders) times[name] = await cpuSeconds()
    rounds.push(times)
  }
  console.log(`| Node ${process.version}, ${rounds.length} rounds | CPU s | over \`${BARE}\` |`)
  console.log('|---|---|---|')
  for (const [name] of contenders) {
    const total = median(rounds.map((times) => times[name]))
    const added = median(rounds.map((times) => times[name] - times[BARE]))
    console.log(`| \`${name}\` | ${total.toFixed(3)} | ${name === BARE ? '' : `+${added.toFixed(3)}`} |`)
  }
} finally {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true, force: true })
}

/** Exports this many rows of four domains. @returns the pipeline file */
async function exportFinished(rows) {
  const pages = Math.round(rows / 4 / PAGE_ROWS)
  const server = await pageServer('typical', pages)
  const path = join(folder, 'finished.yaml')
  writeFileSync(
    path,
    `name: finished
service: { base_url: "${server.url}", requests_per_second: 10000 }
extract: { domains: [d0.example.com, d1.example.com, d2.example.com, d3.example.com], max_requests: none }
load: { path: "${join(folder, 'finished')}" }
`,
  )
  try {
    await measure(CLI, ['run', path, '--no-progress'], ENV)
  } finally {
    server.stop()
  }
  return path
}

/** CPU time of all threads of a run until its first request arrives. Needs Linux. */
async function toFirstRequest() {
  rmSync(join(folder, 'out'), { recursive: true, force: true })
  const child = spawn(process.execPath, [CLI, 'run', file], {
    env: { ...process.env, ...ENV },
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  const seconds = await new Promise((resolve) => {
    onRequest = () => resolve(threadSeconds(child.pid))
  })
  child.kill('SIGKILL')
  await ended
  return seconds
}

function threadSeconds(pid) {
  const threads = readdirSync(`/proc/${pid}/task`)
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  )
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e9
}
