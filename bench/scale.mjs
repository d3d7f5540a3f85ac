/**
 * `npm run bench:scale`: a million partitions (10,000 domains × 100 days): planning them, and taking up a run that
 * has done half of them, each as a process of its own. Prints seconds and peak memory, start-up included.
 */
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lineSealer } from '../dist/state/journal.js'
import { measure } from './measure.mjs'

const CLI = join(import.meta.dirname, '../dist/cli/main.js')
const folder = mkdtempSync(join(tmpdir(), 'spillway-scale-'))
const DOMAINS = 10_000
const DAYS = 100
try {
  const domains = Array.from({ length: DOMAINS }, (_, n) => `d${n}.example.com`)
  writeFileSync(join(folder, 'domains.txt'), domains.join('\n'))
  const file = join(folder, 'scale.yaml')
  writeFileSync(
    file,
    `name: scale
service: { base_url: "http://127.0.0.1:9/firework" }
extract: { domains_file: domains.txt, windows: { from: 2024-01-01, until: 2024-04-10, every: 1d } }
load: { path: "${join(folder, 'out')}" }
`,
  )
  console.log('| what | s | peak MB |')
  console.log('|---|---|---|')
  report('plan, nothing done', await measure(CLI, ['plan', file]))
  writeCheckpoint(domains)
  report('plan, half done', await measure(CLI, ['plan', file]))
  report('status --json, half done', await measure(CLI, ['status', file, '--json']))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function report(what, { wallSeconds, peakMegabytes }) {
  console.log(`| ${what} | ${wallSeconds.toFixed(1)} | ${peakMegabytes.toFixed(0)} |`)
}

/** As a run leaves it: every partition one page, and a shard of its own. */
function writeCheckpoint(domains) {
  mkdirSync(join(folder, 'out/_state'), { recursive: true })
  const fd = openSync(join(folder, 'out/_state/checkpoint.jsonl'), 'w')
  const seal = lineSealer(0)
  const header = { kind: 'header', version: 1, pipeline: 'scale', created_at: '', settings: {} }
  writeSync(fd, seal(header))
  let shard = 0
  for (const domain of domains.slice(0, DOMAINS / 2)) {
    const lines = Array.from({ length: DAYS }, (_, day) => {
      const [from, until] = [day, day + 1].map((n) =>
        new Date(Date.UTC(2024, 0, 1 + n)).toISOString().slice(0, 10),
      )
      const partition = `domain.${domain}/${from}..${until}`
      const importedAt = { min: 1_704_067_200_000_000, max: 1_704_067_300_000_000 }
      return seal({
        kind: 'seal',
        shard: shard++,
        path: `credentials/query=domain.${domain}/window=${from}/part-00000.parquet`,
        rows: 3,
        bytes: 5000,
        sha256: 'a'.repeat(64),
        partitions: [partition],
        imported_at: importedAt,
        page: { partition, next: null, rows: 3, requests: 1, imported_at: importedAt },
      })
    })
    writeSync(fd, Buffer.concat(lines))
  }
}
