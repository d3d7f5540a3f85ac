/**
 * `npm run bench:cluster`: throughput of one worker, time of a takeover, and cost of an idle worker, against a sandbox.
 * The queue is the PostgreSQL of the tests (fsync is off), or SPILLWAY_QUEUE_URL. Workers, queue and sandbox share this
 * machine.
 *
 *   --only a,b            of: carry (throughput), takeover, idle (all)
 *   --organizations a,b   numbers of organizations in one worker, each at one search per second (8,32)
 *   --seconds N           duration of each throughput measurement (20)
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startSandbox } from '../dist/index.js'
import { PASSWORD, startPostgres } from '../test/support/postgres/server.mjs'
import { CLI } from './measure.mjs'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: 'carry,takeover,idle' },
    organizations: { type: 'string', default: '8,32' },
    seconds: { type: 'string', default: '20' },
  },
})
const PARTS = { carry: throughput, takeover, idle }
const PAGE_ROWS = 10_000
const folder = mkdtempSync(join(tmpdir(), 'spillway-cluster-'))
const server = process.env.SPILLWAY_QUEUE_URL ? null : await startPostgres()
try {
  for (const name of options.only.split(',')) {
    await PARTS[name]()
    console.log()
  }
} finally {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** Full pages of many organizations, each with its own rate limit. */
async function throughput() {
  const seconds = Number(options.seconds)
  console.log(
    '| organizations, 1/s each | permits used | rows/s | CPU | threads | memory, MB | per organization, MB |',
  )
  console.log('|---|---|---|---|---|---|---|')
  for (const count of options.organizations.split(',').map(Number)) {
    const cluster = await startCluster(count, (seconds + 30) * PAGE_ROWS)
    const worker = cluster.start('worker', '--concurrency', String(count), '--log-level', 'error')
    await wait(2000)
    const idleMb = memoryOf(worker.pid)
    await cluster.run('submit', ...cluster.files)
    while (cluster.searches().length < count) await wait(50)
    const before = { searches: cluster.searches().length, cpu: cpuSeconds(worker.pid), ms: performance.now() }
    await wait(seconds * 1000)
    const lasted = (performance.now() - before.ms) / 1000
    const searches = cluster.searches().length - before.searches
    const cpuShare = (cpuSeconds(worker.pid) - before.cpu) / lasted
    const memory = memoryOf(worker.pid)
    const threads = readdirSync(`/proc/${worker.pid}/task`).length
    const cells = [
      count,
      percent(searches / lasted / count),
      Math.round((searches * PAGE_ROWS) / lasted).toLocaleString('en'),
      percent(cpuShare),
      threads,
      memory.toFixed(0),
      ((memory - idleMb) / count).toFixed(1),
    ]
    console.log(`| ${cells.join(' | ')} |`)
    await cluster.end()
  }
}

/** Time from the signal to a worker until the next search of its organization. */
async function takeover() {
  console.log('| signal to the worker | time to the next search, s |')
  console.log('|---|---|')
  for (const signal of ['SIGKILL', 'SIGSTOP', 'SIGTERM']) {
    const cluster = await startCluster(1, 200 * 10)
    const first = cluster.start('worker', '--log-level', 'error')
    await cluster.run('submit', ...cluster.files)
    while (cluster.searches().length < 3) await wait(20)
    cluster.start('worker', '--log-level', 'error')
    await wait(3000)
    first.kill(signal)
    const signalledAt = performance.now()
    // Requests in flight arrive in this time.
    await wait(500)
    const sent = cluster.searches().length
    while (cluster.searches().length === sent) await wait(5)
    console.log(`| ${signal} | ${((performance.now() - signalledAt) / 1000).toFixed(1)} |`)
    await cluster.end()
  }
}

/** Cost of a worker without jobs. */
async function idle() {
  const cluster = await startCluster(0, 0)
  const worker = cluster.start('worker', '--log-level', 'error')
  await wait(5000)
  const before = cpuSeconds(worker.pid)
  await wait(15_000)
  const cpuShare = (cpuSeconds(worker.pid) - before) / 15
  console.log(`| an idle worker | ${percent(cpuShare)} of a core | ${memoryOf(worker.pid).toFixed(0)} MB |`)
  await cluster.end()
}

function percent(share) {
  return `${(share * 100).toFixed(1)} %`
}

function memoryOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024
}

function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Starts a sandbox and a queue, and writes a pipeline for each of `count` organizations. */
async function startCluster(count, records) {
  const domains = Array.from({ length: count }, (_, n) => `d${n}.example.com`)
  const sandbox = await startSandbox({ domains, records, requestsPerSecond: 0, basicRequestsPerSecond: 0 })
  const env = {
    ...process.env,
    PGPASSWORD: PASSWORD,
    SPILLWAY_QUEUE_URL: process.env.SPILLWAY_QUEUE_URL || (await server.database()),
    SPILLWAY_TOKEN: sandbox.token,
  }
  const directory = mkdtempSync(join(folder, 'cluster-'))
  const files = domains.map((domain, n) => {
    const file = join(directory, `org-${n}.json`)
    const service = { base_url: sandbox.baseUrl, organization: domain, requests_per_second: 1 }
    const extract = { domains: [domain], page_size: records < 10_000 ? 10 : PAGE_ROWS, concurrency: 1 }
    writeFileSync(
      file,
      JSON.stringify({ name: `org-${n}`, service, extract, load: { path: join(directory, `org-${n}`) } }),
    )
    return file
  })
  const children = []
  const start = (...args) => {
    const child = spawn(process.execPath, [CLI, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
    children.push(child)
    return child
  }
  return {
    files,
    start,
    searches: () => sandbox.requests.filter(({ kind }) => kind === 'search'),
    run: (...args) => new Promise((resolve) => start(...args).on('exit', resolve)),
    async end() {
      const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
      await Promise.all(
        running.map((child) => {
          const exited = new Promise((resolve) => child.on('exit', resolve))
          child.kill('SIGKILL')
          return exited
        }),
      )
      await sandbox.close()
    },
  }
}
