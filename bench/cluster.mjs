/**
 * `npm run bench:cluster`: what many workers do together, against a sandbox and the PostgreSQL of the tests (which flushes
 * nothing). Workers, server and sandbox share this machine.
 *
 *   --only a,b       of: workers, pace, commits, million, idle (all)
 *   --rows N         rows that 1, 2 and 4 workers export (400000)
 *   --seconds N      how long 50 organizations are asked once a second each (60)
 *   --chains N       chains that are submitted at once (1000000)
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startSandbox } from '../dist/sandbox/index.js'
import { PASSWORD, startPostgres } from '../test/support/postgres/server.mjs'
import { CLI } from './measure.mjs'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: 'workers,pace,commits,million,idle' },
    rows: { type: 'string', default: '400000' },
    seconds: { type: 'string', default: '60' },
    chains: { type: 'string', default: '1000000' },
  },
})
const PARTS = { workers, pace, commits, million, idle }
const folder = mkdtempSync(join(tmpdir(), 'spillway-cluster-'))
const server = await startPostgres()
try {
  for (const name of options.only.split(',')) {
    await PARTS[name]()
    console.log()
  }
} finally {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** Pages and rows a second, without a pace. */
async function workers() {
  const domains = Array.from({ length: 8 }, (_, n) => `d${n}.example.com`)
  const records = Number(options.rows) / domains.length
  const sandbox = await startSandbox({ domains, records, requestsPerSecond: 0, basicRequestsPerSecond: 0 })
  console.log('| workers | pages/s | rows/s | transactions a page |')
  console.log('|---|---|---|---|')
  for (const count of [0, 1, 2, 4]) {
    const at = await place(sandbox)
    const file = at.pipeline('no-pace', {
      service: { requests_per_second: 10000, basic_requests_per_second: 10000 },
      extract: { domains, page_size: 1000, concurrency: 8, max_requests: 'none' },
    })
    const running = await at.startWorkers(count, 8)
    const before = await at.transactions()
    const started = performance.now()
    // None: what one machine makes of it without a database.
    await (count === 0 ? at.run('run', file) : at.run('submit', file, '--wait', '--json'))
    const seconds = (performance.now() - started) / 1000
    const pages = sandbox.requests.length - at.requestsBefore
    const transactions = (await at.transactions()) - before
    await at.stop(running)
    console.log(
      `| ${count || '`run`'} | ${(pages / seconds).toFixed(0)} | ${Math.round((pages * 1000) / seconds).toLocaleString('en')} | ${count === 0 ? '' : (transactions / pages).toFixed(1)} |`,
    )
  }
  await sandbox.close()
}

/** Whether every second of every organization is used. */
async function pace() {
  const count = 50
  const seconds = Number(options.seconds)
  const domains = Array.from({ length: count }, (_, n) => `d${n}.example.com`)
  const sandbox = await startSandbox({
    domains,
    records: (seconds + 20) * 2,
    requestsPerSecond: 0,
    basicRequestsPerSecond: 0,
  })
  const at = await place(sandbox)
  const files = domains.map((domain, n) =>
    at.pipeline(`org-${n}`, {
      service: { requests_per_second: 1, organization: `org-${n}` },
      extract: { domains: [domain], page_size: 2, concurrency: 2, max_requests: seconds },
    }),
  )
  const running = await at.startWorkers(4, 32)
  await at.run('submit', ...files, '--wait', '--json')
  await at.stop(running)
  const shares = []
  let least = Number.POSITIVE_INFINITY
  for (const domain of domains) {
    const sent = sandbox.requests.filter((each) => each.kind === 'search' && each.body.query.fqdn === domain)
    // The first of each worker waits longer.
    const times = sent.slice(5).map(({ at: when }) => when)
    for (let i = 1; i < times.length; i++) least = Math.min(least, times[i] - times[i - 1])
    shares.push((times.length - 1) / ((times.at(-1) - times[0]) / 1000))
  }
  shares.sort((a, b) => a - b)
  await sandbox.close()
  console.log('| organizations, 1/s each | workers | ticks used, the median | the least | least gap, ms |')
  console.log('|---|---|---|---|---|')
  const percent = (share) => `${(share * 100).toFixed(1)} %`
  console.log(
    `| ${count} | 4 | ${percent(shares[count / 2])} | ${percent(shares[0])} | ${least.toFixed(0)} |`,
  )
}

/** What the database takes: a page is a turn and a line. */
async function commits() {
  const at = await place(null)
  const run = '00000000-0000-4000-8000-000000000001'
  await at.sql(`INSERT INTO spillway.organizations VALUES ('o')`)
  await at.sql(
    `INSERT INTO spillway.tiers (organization, tier) SELECT 'o' || n, 'search' FROM generate_series(1, 1000) n`,
  )
  await at.sql(`INSERT INTO spillway.runs (run, data_set, pipeline, organization, definition, digest, lanes, waiting)
    VALUES ('${run}', '/d', 'p', 'o', '{}', '', 1000, 0)`)
  await at.sql(
    `INSERT INTO spillway.chains (run, chain, query, state, fence) SELECT '${run}', n, 0, 'active', 1 FROM generate_series(1, 1000) n`,
  )
  const line = JSON.stringify({ kind: 'page', text: 'x'.repeat(700) })
  console.log('| connections | pages committed a second (a turn and a line each) |')
  console.log('|---|---|')
  for (const connections of [1, 4, 16]) {
    const clients = await Promise.all(Array.from({ length: connections }, () => at.client()))
    let pages = 0
    const end = performance.now() + 5000
    await Promise.all(
      clients.map(async (client, n) => {
        for (let number = 0; performance.now() < end; number++) {
          const chain = 1 + n
          await client.query(`SELECT * FROM take_turn($1, 'basic', $2, interval '0', NULL)`, [
            `o${chain}`,
            run,
          ])
          await client.query('SELECT append_line($1, $2, $3, $4, $5)', [
            run,
            chain,
            1,
            number + connections * 1_000_000,
            line,
          ])
          pages++
        }
      }),
    )
    await Promise.all(clients.map((client) => client.end()))
    console.log(`| ${connections} | ${Math.round(pages / 5).toLocaleString('en')} |`)
  }
}

/** A great many chains at once. */
async function million() {
  const at = await place(null)
  const chains = Number(options.chains)
  const queries = Math.min(1000, chains)
  const domains = Array.from({ length: queries }, (_, n) => `d${n}.example.com`)
  const hours = Math.ceil(chains / queries)
  const until = new Date(Date.UTC(2024, 0, 1) + hours * 3_600_000).toISOString()
  const file = at.pipeline('million', {
    service: { organization: 'o' },
    extract: {
      domains,
      windows: { from: '2024-01-01T00:00:00Z', until, every: '1h', per_chain: 1 },
      max_requests: 'none',
    },
  })
  const usage = join(folder, 'usage.json')
  const started = performance.now()
  at.run.env = { NODE_OPTIONS: `--import ${join(import.meta.dirname, 'usage.mjs')}`, BENCH_USAGE: usage }
  await at.run('submit', file)
  const seconds = (performance.now() - started) / 1000
  const { peakMegabytes } = JSON.parse(readFileSync(usage, 'utf8'))
  const [{ bytes }] = await at.sql(`SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
    WHERE relnamespace = 'spillway'::regnamespace AND relkind = 'r'`)
  const client = await at.client()
  const claims = 2000
  const from = performance.now()
  await client.query(`UPDATE runs SET lanes = 1000000`)
  for (let n = 0; n < claims; n++) {
    await client.query(`SELECT * FROM claim_chain('00000000-0000-4000-8000-000000000002', '{}')`)
  }
  const claimMs = (performance.now() - from) / claims
  await client.end()
  console.log('| chains submitted | s | peak MB of `submit` | tables, MB | ms to claim one |')
  console.log('|---|---|---|---|---|')
  console.log(
    `| ${chains.toLocaleString('en')} | ${seconds.toFixed(1)} | ${peakMegabytes.toFixed(0)} | ${(bytes / 1e6).toFixed(0)} | ${claimMs.toFixed(2)} |`,
  )
}

/** What workers cost that have nothing to do. */
async function idle() {
  const at = await place(null)
  const running = await at.startWorkers(4, 16)
  await wait(5000)
  const before = [await at.transactions(), cpuSeconds(running)]
  await wait(20_000)
  const transactions = (await at.transactions()) - before[0]
  const cpu = cpuSeconds(running) - before[1]
  await at.stop(running)
  console.log('| idle workers | transactions a second, each | processor, each |')
  console.log('|---|---|---|')
  console.log(`| 4 | ${(transactions / 20 / 4).toFixed(1)} | ${((cpu / 20 / 4) * 100).toFixed(2)} % |`)
}

function cpuSeconds(processes) {
  const ticks = processes.map(({ pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return Number(fields[11]) + Number(fields[12])
  })
  const perSecond = Number(spawnSync('getconf', ['CLK_TCK']).stdout.toString())
  return ticks.reduce((sum, each) => sum + each, 0) / perSecond
}

/** A database of its own, with the tables, and a folder. */
async function place(sandbox) {
  const url = await server.database()
  const env = {
    ...process.env,
    PGPASSWORD: PASSWORD,
    SPILLWAY_DATABASE_URL: url,
    SPILLWAY_BASE_URL: sandbox?.baseUrl ?? 'http://127.0.0.1:1/none',
    SPILLWAY_TOKEN: sandbox?.token ?? 'none-of-your-business',
  }
  const own = mkdtempSync(join(folder, 'place-'))
  const client = async () => {
    const { hostname: host, port, username: user, pathname } = new URL(url)
    const each = new pg.Client({
      host,
      port,
      user,
      password: PASSWORD,
      database: pathname.slice(1),
      options: '-c search_path=spillway',
    })
    // Ended with the server where something failed.
    each.on('error', () => {})
    await each.connect()
    return each
  }
  const run = (...args) => ended(spawnCli(args, { ...env, ...run.env }, 'ignore'))
  await run('cluster', 'init')
  const sql = async (text) => {
    const each = await client()
    try {
      return (await each.query(text)).rows
    } finally {
      await each.end()
    }
  }
  return {
    run,
    client,
    sql,
    requestsBefore: sandbox?.requests.length ?? 0,
    pipeline(name, parts) {
      const file = join(own, `${name}.json`)
      const service = { base_url: env.SPILLWAY_BASE_URL, ...parts.service }
      writeFileSync(file, JSON.stringify({ name, ...parts, service, load: { path: join(own, name) } }))
      return file
    },
    async startWorkers(count, lanes) {
      const running = Array.from({ length: count }, () =>
        spawnCli(['worker', '--concurrency', String(lanes), '--log-level', 'error'], env, 'inherit'),
      )
      while (Number((await sql('SELECT count(*) AS n FROM workers'))[0].n) < count) await wait(50)
      return running
    },
    async stop(running) {
      for (const each of running) each.kill('SIGTERM')
      await Promise.all(running.map(ended))
    },
    async transactions() {
      // The server gathers its figures once a second.
      await wait(1200)
      const [{ n }] = await sql(
        'SELECT xact_commit::float8 AS n FROM pg_stat_database WHERE datname = current_database()',
      )
      return n
    },
  }
}

function spawnCli(args, env, stderr) {
  return spawn(process.execPath, [CLI, ...args], { env, stdio: ['ignore', 'ignore', stderr] })
}

function ended(child) {
  if (child.exitCode !== null) return Promise.resolve()
  return new Promise((resolve) => child.on('exit', resolve))
}
