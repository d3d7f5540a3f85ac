/**
 * `npm run bench:timeline`: who waits for whom in one export. It samples which threads of the export and of the page
 * server want a processor, and prints the gaps between requests. Linux only. Arguments: transform.secret (redact),
 * rows (2000000).
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { CLI, pageServer, writePipeline } from './measure.mjs'

const [, , secret = 'redact', rows = '2000000'] = process.argv
const PARTITIONS = 5
const SAMPLE_MS = 3
// A row group has so many pages.
const ROW_GROUP_PAGES = 10
const folder = mkdtempSync(join(tmpdir(), 'spillway-timeline-'))
const server = await pageServer('typical', Math.ceil(Number(rows) / 10_000 / PARTITIONS))
try {
  const { file, env } = writePipeline(folder, server.url, PARTITIONS, { secret })
  const child = spawn(process.execPath, [CLI, 'run', file], {
    env: { ...process.env, ...env, BENCH_OUTPUT: join(folder, 'out') },
    stdio: 'ignore',
  })
  const samples = await sample(child)
  printThreads(samples)
  printGaps(await (await fetch(server.url)).json())
} finally {
  server.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** @returns for each sample its milliseconds, and how many threads of the export and of the server were runnable */
async function sample(child) {
  const samples = []
  for (let last = performance.now(); child.exitCode === null; ) {
    await setTimeout(SAMPLE_MS)
    const now = performance.now()
    samples.push([now - last, runnable(child.pid) + runnable(server.pid)])
    last = now
  }
  if (child.exitCode !== 0) throw new Error(`the export exited with ${child.exitCode}`)
  return samples
}

function runnable(pid) {
  try {
    const states = readdirSync(`/proc/${pid}/task`).map((task) =>
      readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1').replace(/^.*\) /s, ''),
    )
    return states.filter((state) => state.startsWith('R')).length
  } catch {
    return 0 // The process or one of its threads ended meanwhile.
  }
}

/** A machine that is busy with other work divides its time by threads, so work is counted by them. */
function printThreads(samples) {
  const sum = (each) => samples.reduce((total, [ms, threads]) => total + each(ms, threads), 0)
  const work = sum((ms, threads) => ms * threads)
  const share = (least, most) =>
    (sum((ms, threads) => (threads >= least && threads <= most ? ms * threads : 0)) / work) * 100
  console.log(`work while one thread was runnable: ${share(1, 1).toFixed(1)} %`)
  console.log(`while two were: ${share(2, 2).toFixed(1)} %, more: ${share(3, 99).toFixed(1)} %`)
  console.log(`none was for ${sum((ms, threads) => (threads === 0 ? ms : 0)).toFixed(0)} ms`)
}

/** Pages that waited for a row group would show as a gap after every tenth request. */
function printGaps(log) {
  const gaps = log.slice(1).map((at, i) => at - log[i])
  const byPlace = Array.from({ length: ROW_GROUP_PAGES }, (_, place) => {
    const those = gaps
      .filter((_, i) => i >= 2 * ROW_GROUP_PAGES && i % ROW_GROUP_PAGES === place)
      .sort((a, b) => a - b)
    return (those[those.length >> 1] ?? Number.NaN).toFixed(0)
  })
  console.log(`median ms between requests, by place in ten: ${byPlace.join(' ')}`)
}
