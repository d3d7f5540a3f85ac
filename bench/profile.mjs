/**
 * `npm run bench:profile`: CPU profile of one export: the functions that take most time, for each thread.
 * Arguments: transform.secret (redact), load.format (parquet), rows (1000000).
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CLI, pageServer, writePipeline } from './measure.mjs'

const [, , secret = 'redact', format = 'parquet', rows = '1000000'] = process.argv
const PARTITIONS = 5
const folder = mkdtempSync(join(tmpdir(), 'spillway-profile-'))
const server = await pageServer('typical', Math.ceil(Number(rows) / 10_000 / PARTITIONS))
try {
  const { file, env } = writePipeline(folder, server.url, PARTITIONS, { secret, format })
  const args = ['--cpu-prof', '--cpu-prof-dir', join(folder, 'profiles'), CLI, 'run', file]
  await new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env, BENCH_OUTPUT: join(folder, 'out') },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    child.on('close', resolve)
  })
  for (const name of readdirSync(join(folder, 'profiles'))) {
    print(JSON.parse(readFileSync(join(folder, 'profiles', name), 'utf8')))
  }
} finally {
  server.stop()
  rmSync(folder, { recursive: true, force: true })
}

function print({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const self = new Map()
  let busy = 0
  for (const [index, id] of samples.entries()) {
    const { functionName, url, lineNumber } = byId.get(id).callFrame
    if (functionName === '(idle)') continue
    const name = `${functionName || '(anonymous)'} ${url.split('/').slice(-2).join('/')}:${lineNumber + 1}`
    self.set(name, (self.get(name) ?? 0) + timeDeltas[index])
    busy += timeDeltas[index]
  }
  console.log(`\nThread, ${(busy / 1e6).toFixed(2)} s busy`)
  for (const [name, micros] of [...self].sort(([, a], [, b]) => b - a).slice(0, 20)) {
    console.log(`  ${((micros / busy) * 100).toFixed(1).padStart(5)} %  ${name}`)
  }
}
