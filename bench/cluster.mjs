/**
 * `npm run bench:cluster`: what one worker carries, and how long it takes until another one goes on, against a sandbox
 * and the PostgreSQL of the tests (which flushes nothing), or SPILLWAY_QUEUE_URL. Workers, queue and sandbox share this machine.
 *
 *   --only a,b            of: carry, takeover, idle (all)
 *   --organizations a,b   at one search a second each, in one worker (8,32)
 *   --seconds N           for so long (20)
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
const PARTS = { carry, takeover, idle }
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

/** Full pages of many organizations, each at its pace. */
async function carry() {
  const seconds = Number(options.seconds)
  console.log(
    '| organizations, 1/s each | ticks used | rows/s | processor | threads | memory, MB | each, MB |',
  )
  console.log('|---|---|---|---|---|---|---|')
  for (const count of options.organizations.split(',').map(Number)) {
    const at = await place(count, (seconds + 30) * PAGE_ROWS)
    const worker = at.start('worker', '--concurrency', String(count), '--log-level', 'error')
    await wait(2000)
    const idleMb = memoryOf(worker.pid)
    await at.run('submit', ...at.files)
    while (at.searches().length < count) await wait(50)
    const before = { searches: at.searches().length, cpu: cpuSeconds(worker.pid), ms: performance.now() }
    await wait(seconds * 1000)
    const lasted = (performance.now() - before.ms) / 1000
    const searches = at.searches().length - before.searches
    const processor = (cpuSeconds(worker.pid) - before.cpu) / lasted
    const memory = memoryOf(worker.pid)
    const threads = readdirSync(`/proc/${worker.pid}/task`).length
    const cells = [
      count,
      percent(searches / lasted / count),
      Math.round((searches * PAGE_ROWS) / lasted).toLocaleString('en'),
      percent(processor),
      threads,
      memory.toFixed(0),
      ((memory - idleMb) / count).toFixed(1),
    ]
    console.log(`| ${cells.join(' | ')} |`)
    await at.end()
  }
}

/** From a death to the next search of the organization. */
async function takeover() {
  console.log('| the worker is | next search after, s |')
  console.log('|---|---|')
  for (const signal of ['SIGKILL', 'SIGSTOP', 'SIGTERM']) {
    const at = await place(1, 200 * 10)
    const victim = at.start('worker', '--log-level', 'error')
    await at.run('submit', ...at.files)
    while (at.searches().length < 3) await wait(20)
    at.start('worker', '--log-level', 'error')
    await wait(3000)
    victim.kill(signal)
    const struck = performance.now()
    // What was on its way then comes in.
    await wait(500)
    const sent = at.searches().length
    while (at.searches().length === sent) await wait(5)
    console.log(`| ${signal} | ${((performance.now() - struck) / 1000).toFixed(1)} |`)
    await at.end()
  }
}

/** What a worker costs that has nothing to do. */
async function idle() {
  const at = await place(0, 0)
  const worker = at.start('worker', '--log-level', 'error')
  await wait(5000)
  const before = cpuSeconds(worker.pid)
  await wait(15_000)
  const processor = (cpuSeconds(worker.pid) - before) / 15
  console.log(`| an idle worker | ${percent(processor)} of a core | ${memoryOf(worker.pid).toFixed(0)} MB |`)
  await at.end()
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

/** A sandbox, a queue, and a pipeline for each of so many organizations. */
async function place(count, records) {
  const domains = Array.from({ length: count }, (_, n) => `d${n}.example.com`)
  const sandbox = await startSandbox({ domains, records, requestsPerSecond: 0, basicRequestsPerSecond: 0 })
  const env = {
    ...process.env,
    PGPASSWORD: PASSWORD,
    SPILLWAY_QUEUE_URL: process.env.SPILLWAY_QUEUE_URL || (await server.database()),
    SPILLWAY_TOKEN: sandbox.token,
  }
  const own = mkdtempSync(join(folder, 'place-'))
  const files = domains.map((domain, n) => {
    const file = join(own, `org-${n}.json`)
    const service = { base_url: sandbox.baseUrl, organization: domain, requests_per_second: 1 }
    const extract = { domains: [domain], page_size: records < 10_000 ? 10 : PAGE_ROWS, concurrency: 1 }
    writeFileSync(
      file,
      JSON.stringify({ name: `org-${n}`, service, extract, load: { path: join(own, `org-${n}`) } }),
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
          const gone = new Promise((resolve) => child.on('exit', resolve))
          child.kill('SIGKILL')
          return gone
        }),
      )
      await sandbox.close()
    },
  }
}
