/**
 * `npm run bench:pace`: whether an export respects the rate limit and uses all of it. The sandbox allows one request
 * per second and responds 429 to a request that comes too early.
 *
 *   --pages N      requests (60)
 *   --latency A-B  range of response times in milliseconds; above 0: 12 partitions instead of one (0)
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startSandbox } from '../dist/index.js'
import { CLI } from './measure.mjs'

const { values: options } = parseArgs({
  options: { pages: { type: 'string', default: '60' }, latency: { type: 'string', default: '0' } },
})
const pages = Number(options.pages)
const [minMs, maxMs = minMs] = options.latency.split('-').map(Number)
const partitions = maxMs > 0 ? 12 : 1
const folder = mkdtempSync(join(tmpdir(), 'spillway-pace-'))
const domains = Array.from({ length: partitions }, (_, n) => `d${n}.example.com`)
const records = Math.ceil(pages / partitions) * 10
const sandbox = await startSandbox({ domains, records, requestsPerSecond: 1, latencyMs: [minMs, maxMs] })
try {
  const file = join(folder, 'pace.yaml')
  writeFileSync(
    file,
    `name: pace
service: { base_url: "${sandbox.baseUrl}" }
extract: { domains: [${domains}], page_size: 10, concurrency: ${Math.min(partitions, 8)}, max_requests: none }
load: { path: "${join(folder, 'out')}" }
`,
  )
  await new Promise((resolve) => {
    const child = spawn(process.execPath, [CLI, 'run', file], {
      env: { ...process.env, SPILLWAY_TOKEN: sandbox.token },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    child.on('close', resolve)
  })
  const searches = sandbox.requests.filter(({ kind }) => kind === 'search')
  const seconds = (searches.at(-1).at - searches[0].at) / 1000
  const rejected = searches.filter(({ status }) => status === 429).length
  console.log('| requests | first to last, s | s per request (limit: 1) | 429 |')
  console.log('|---|---|---|---|')
  console.log(
    `| ${searches.length} | ${seconds.toFixed(1)} | ${(seconds / (searches.length - 1)).toFixed(4)} | ${rejected} |`,
  )
} finally {
  await sandbox.close()
  rmSync(folder, { recursive: true, force: true })
}
