/**
 * `npm run bench:scale`: a million partitions (10,000 domains × 100 days, one chain per domain): plans them, and
 * resumes a run that has exported half of them, each into its own shard, and ends one after 50 requests. Each figure is a separate process, start-up
 * included. The time of `run` ends at its first request and includes the stat of half a million shards.
 */
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LineWriter } from '../build/parts/journal.js'
import { CLI, measure } from './measure.mjs'

const ENV = { SPILLWAY_TOKEN: 'bench' }

const folder = mkdtempSync(join(tmpdir(), 'spillway-scale-'))
const output = join(folder, 'out')
const DOMAINS = 10_000
const DAYS = 100

let firstRequestAt = null
const server = createServer((_request, response) => {
  firstRequestAt ??= performance.now()
  response.end('{"items":[],"next":null}')
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
try {
  const domains = Array.from({ length: DOMAINS }, (_, n) => `d${n}.example.com`)
  writeFileSync(join(folder, 'domains.txt'), domains.join('\n'))
  const file = join(folder, 'scale.yaml')
  writeFileSync(
    file,
    `name: scale
service: { base_url: "http://127.0.0.1:${server.address().port}/firework" }
extract: { domains_file: domains.txt, windows: { from: 2024-01-01, until: 2024-04-10, every: 1d }, max_requests: 1 }
load: { path: "${output}" }
`,
  )
  console.log('| measured | s | peak MB |')
  console.log('|---|---|---|')
  report('plan, nothing done', await measure(CLI, ['plan', file], ENV))
  report('run to its first request, nothing done', await firstRequest(file))
  const fifty = ['run', file, '--max-requests', '50']
  report('run that may send 50 requests, to its end', await measure(CLI, fifty, ENV, 4))
  rmSync(output, { recursive: true })
  // For its header.
  await firstRequest(file)
  writeHalfDone(domains)
  report('plan, half done', await measure(CLI, ['plan', file], ENV))
  report('run to its first request, half done', await firstRequest(file))
  report('status --json, half done', await measure(CLI, ['status', file, '--json']))
} finally {
  server.close()
  rmSync(folder, { recursive: true, force: true })
}

async function firstRequest(file) {
  firstRequestAt = null
  const startedAt = performance.now()
  // It stops at its budget of one request: exit code 4.
  const usage = await measure(CLI, ['run', file], ENV, 4)
  return { ...usage, wallSeconds: (firstRequestAt - startedAt) / 1000 }
}

function report(what, { wallSeconds, peakMegabytes }) {
  console.log(`| ${what} | ${wallSeconds.toFixed(1)} | ${peakMegabytes.toFixed(0)} |`)
}

/** Writes the state of a run that has exported half of the queries: one page per chain, one shard per partition. */
function writeHalfDone(domains) {
  const checkpoint = join(output, '_state/checkpoint.jsonl')
  const [header] = readFileSync(checkpoint, 'utf8').split('\n')
  const { parts } = JSON.parse(header)
  const fd = openSync(checkpoint, 'w')
  const writer = new LineWriter(0)
  const write = (entry) => writeSync(fd, writer.line({ parts: [{ entries: [entry] }] }))
  write(parts[0].entries[0])
  const days = Array.from({ length: DAYS }, (_, day) => {
    const [from, until] = [day, day + 1].map((n) =>
      new Date(Date.UTC(2024, 0, 1 + n)).toISOString().slice(0, 10),
    )
    return { from, window: `${from}..${until}` }
  })
  const importedAt = { min: 1_704_067_200_000_000, max: 1_704_067_300_000_000 }
  for (const [chain, domain] of domains.slice(0, DOMAINS / 2).entries()) {
    const query = `domain.${domain}`
    const seals = days.map(({ from, window }, day) => {
      const directory = `credentials/query=${query}/import_window=${from}`
      mkdirSync(join(output, directory), { recursive: true })
      writeFileSync(join(output, directory, 'part-00000.parquet'), 'x')
      return {
        kind: 'seal',
        shard: chain * DAYS + day,
        path: `${directory}/part-00000.parquet`,
        rows: 3,
        bytes: 1,
        sha256: 'a'.repeat(64),
        partitions: [`${query}/${window}`],
        imported_at: importedAt,
      }
    })
    for (const seal of seals) write(seal)
    for (const { window } of days) {
      write({
        kind: 'partition',
        partition: `${query}/${window}`,
        rows: 3,
        pages: 1,
        requests: 1,
        quarantined: 0,
      })
    }
  }
  write({ kind: 'end_of_log', file: 100_000_000, bytes: 0, checksum: 0 })
}
