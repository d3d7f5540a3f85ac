/**
 * `npm run bench:pace`: whether an export keeps to the pace that is allowed and uses all of it, against a sandbox
 * that allows one request a second and tells of every one that came too early.
 *
 *   --pages N      requests in one chain (60)
 *   --latency A-B  milliseconds that answers take; with several partitions (0)
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
const [least, most = least] = options.latency.split('-').map(Number)
const partitions = most > 0 ? 12 : 1
const folder = mkdtempSync(join(tmpdir(), 'spillway-pace-'))
const domains = Array.from({ length: partitions }, (_, n) => `d${n}.example.com`)
const records = Math.ceil(pages / partitions) * 10
const sandbox = await startSandbox({ domains, records, requestsPerSecond: 1, latencyMs: [least, most] })
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
  const refused = searches.filter(({ status }) => status === 429).length
  console.log('| requests | from first to last, s | per allowed second | 429 |')
  console.log('|---|---|---|---|')
  console.log(
    `| ${searches.length} | ${seconds.toFixed(1)} | ${(seconds / (searches.length - 1)).toFixed(4)} | ${refused} |`,
  )
} finally {
  await sandbox.close()
  rmSync(folder, { recursive: true, force: true })
}
