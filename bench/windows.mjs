/**
 * `npm run bench:windows`: cost of windows. It compares the requests that an export sends with the minimum for its rows
 * and with one request for each partition and page, and measures the time without a rate limit.
 *
 *   --only TEXT    cases whose name contains the text
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startSandbox } from '../build/parts/sandbox.js'
import { CLI, measure } from './measure.mjs'

const { values: options } = parseArgs({ options: { only: { type: 'string', default: '' } } })

const CASES = [
  { name: '40 domains × 24 months, few rows', domains: 40, records: 48, until: '2024-01-01', every: 'month' },
  { name: '5 domains × 90 days', domains: 5, records: 90, until: '2022-04-01', every: '1d' },
  {
    name: '8 domains × 12 months of half a page',
    domains: 8,
    records: 600,
    until: '2023-01-01',
    every: 'month',
    pageSize: 100,
  },
  {
    name: '20,000 domains with 3 rows each × 12 months, in one folder',
    domains: 20_000,
    records: 3,
    until: '2023-01-01',
    every: 'month',
    by: 'none',
  },
  {
    name: 'one page over 1,000 days, a folder each',
    domains: 1,
    records: 9_900,
    until: '2024-09-27',
    every: '1d',
  },
  {
    name: 'one page over 1,000 days, in one folder',
    domains: 1,
    records: 9_900,
    until: '2024-09-27',
    every: '1d',
    by: 'none',
  },
]
const FROM = '2022-01-01'

console.log('| windows | partitions | requests | minimum | one per partition and page | s | peak MB |')
console.log('|---|---|---|---|---|---|---|')
for (const {
  name,
  domains: count,
  records,
  until,
  every,
  pageSize = 10_000,
  by = '[query, window]',
} of CASES) {
  if (!name.includes(options.only)) continue
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
  const domains = Array.from({ length: count }, (_, n) => `d${n}.example.com`)
  const sandbox = await startSandbox({
    domains,
    records,
    from: FROM,
    until,
    requestsPerSecond: 0,
    nastyRate: 0,
  })
  try {
    const file = join(folder, 'windows.yaml')
    writeFileSync(join(folder, 'domains.txt'), domains.join('\n'))
    writeFileSync(
      file,
      `name: windows
service: { base_url: "${sandbox.baseUrl}", requests_per_second: 10000 }
extract:
  domains_file: domains.txt
  windows: { from: ${FROM}, until: ${until}, every: ${every} }
  page_size: ${pageSize}
  concurrency: ${count === 1 ? 1 : 4}
  max_requests: none
load: { path: "\${BENCH_OUTPUT}", partition_by: ${by} }
`,
    )
    const env = { SPILLWAY_TOKEN: sandbox.token }
    const { wallSeconds, peakMegabytes } = await measure(CLI, ['run', file, '--no-progress'], env)
    const windows = windowsOf(until, every)
    const rows = (fqdn, from, end) =>
      [...sandbox.expected({ query: { type: 'domain', fqdn }, from, until: end })].length
    const pages = (items) => Math.max(1, Math.ceil(items / pageSize))
    // All domains have the same number of rows, so the first one represents all of them.
    const perDomain = windows.reduce((sum, [from, end]) => sum + pages(rows(domains[0], from, end)), 0)
    const cells = [
      name,
      (windows.length * count).toLocaleString('en'),
      sandbox.requests.length.toLocaleString('en'),
      (count * pages(records)).toLocaleString('en'),
      (count * perDomain).toLocaleString('en'),
      wallSeconds.toFixed(1),
      peakMegabytes.toFixed(0),
    ]
    console.log(`| ${cells.join(' | ')} |`)
  } finally {
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function windowsOf(until, every) {
  const windows = []
  for (let from = new Date(FROM); from < new Date(until); ) {
    const end = new Date(from)
    if (every === 'month') end.setUTCMonth(end.getUTCMonth() + 1)
    else end.setUTCDate(end.getUTCDate() + 1)
    windows.push([from.toISOString(), end.toISOString()])
    from = end
  }
  return windows
}
