/**
 * `npm run soak -- --minutes N [--seed S]`: runs random pipelines against the sandbox, each repeatedly until it is
 * complete, with random network faults, kills, signals, full disks, expired tokens, budgets and quotas. Then it
 * compares every row with the data of the service. Exit 1 if a row is lost or duplicated, a secret is leaked, or a run
 * ends in a way that is not documented.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startSandbox } from '../../build/parts/sandbox.js'
import { judge } from './judge.mjs'
import { networkFaults, random, randomDisturbance, scenario } from './scenario.mjs'

const CLI = join(import.meta.dirname, '../../dist/cli/main.js')
const DISK_FAULT = join(import.meta.dirname, '../fault/disk-fault.mjs')
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string' },
    round: { type: 'string', default: '1' },
  },
})
const minutes = Number(values.minutes)
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error('Usage: npm run soak -- --minutes N [--seed S]')
  process.exit(2)
}

// After this many runs a pipeline is not disturbed any more, so that it completes.
const MAX_DISTURBED = 12
const MAX_RUNS = 20
const KEYS = {
  SPILLWAY_TOKEN: 'soak-token-4b1d7c90aa52',
  SPILLWAY_API_KEY: 'soak-api-key-98cc1f03be77',
  SPILLWAY_MASK_KEY: 'soak-mask-key-of-at-least-32-bytes-5e2a',
}

const COLUMNS = [
  'round',
  'output',
  'runs',
  'stops',
  'requests',
  'rows',
  'quarantined',
  'lost',
  'doubled',
  'leaked',
  'repeated',
  'too_many',
]
const totals = Object.fromEntries(COLUMNS.map((name) => [name, 0]))
const endCounts = new Map()
const wrong = []

console.log(`seed ${seed}, ${minutes} minutes`)
console.log(tableRow(COLUMNS))
const endMs = Date.now() + minutes * 60_000
for (let number = Number(values.round); Date.now() < endMs; number++) {
  const result = await round(number)
  console.log(tableRow(COLUMNS.map((name) => result[name])))
  totals.round++
  for (const name of COLUMNS)
    if (typeof result[name] === 'number' && name !== 'round') totals[name] += result[name]
}
console.log(tableRow(COLUMNS.map((name) => (name === 'output' ? 'all' : totals[name]))))
console.log(
  `runs by end: ${[...endCounts]
    .sort()
    .map(([end, times]) => `${end}: ${times}`)
    .join(', ')}`,
)
for (const line of wrong) console.log(`WRONG: ${line}`)
const failed = wrong.length + totals.lost + totals.doubled + totals.leaked + totals.too_many > 0
console.log(`${failed ? 'FAILED' : 'ok'}; repeat with: npm run soak -- --minutes ${minutes} --seed ${seed}`)
process.exitCode = failed ? 1 : 0

async function round(number) {
  const rng = random(seed + number * 7919)
  const plan = scenario(rng)
  const folder = await mkdtemp(join(tmpdir(), 'spillway-soak-'))
  const output = join(folder, 'out')
  await writeFile(join(folder, 'pipeline.yaml'), plan.yaml)
  const tally = { runs: 0, stops: 0, requests: 0, repeated: 0, allowed: 0 }
  const printed = []
  const served = new Set()
  let cursorKey = 'first'
  let before = 'nothing'
  try {
    for (;;) {
      const last = ++tally.runs > MAX_DISTURBED
      const disturbance = last ? null : randomDisturbance(rng)
      if (disturbance?.kind === 'other cursors') {
        cursorKey = `key-${tally.runs}`
        served.clear()
      }
      const { end, requests, text } = await run({ plan, rng, disturbance, last, folder, output, cursorKey })
      printed.push(text)
      endCounts.set(end, (endCounts.get(end) ?? 0) + 1)
      tally.requests += requests.length
      const pages = repeated(requests, served)
      tally.repeated += pages
      if (pages > 0 && tally.repeated > tally.allowed) {
        wrong.push(`round ${number}, run ${tally.runs} repeated ${pages} pages, after: ${before}`)
      }
      if (end !== 'exit 0') tally.stops++
      before = `${describe(disturbance)}, ${end}`
      if (isCutOff(end, disturbance)) tally.allowed += plan.settings.concurrency
      if (!isDocumented(end, disturbance))
        wrong.push(`round ${number}, run ${tally.runs} (${describe(disturbance)}): ${end}\n${text}`)
      if (end === 'exit 0' || tally.runs === MAX_RUNS) break
    }
    if (tally.runs === MAX_RUNS) wrong.push(`round ${number} was not complete after ${MAX_RUNS} runs`)
    const sandbox = await startSandbox(plan.data)
    const secrets = Object.values(KEYS)
    const verdict = await judge({ output, folder, sandbox, scenario: plan, secrets, printed })
    await sandbox.close()
    for (const leak of verdict.leaks) wrong.push(`round ${number}: ${leak}`)
    const too_many = Math.max(0, tally.repeated - tally.allowed)
    return {
      round: number,
      output: plan.settings.output.replace('format: ', ''),
      ...tally,
      ...verdict,
      too_many,
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the command once, with a disturbance. */
async function run({ plan, rng, disturbance, last, folder, output, cursorKey }) {
  let onSearch = () => {}
  const sandbox = await startSandbox({
    ...plan.data,
    cursorKey,
    token: KEYS.SPILLWAY_TOKEN,
    apiKey: KEYS.SPILLWAY_API_KEY,
    ...(disturbance?.kind === 'quota' ? { quota: disturbance.requests + 1 } : {}),
    // This fault is never injected. Its condition observes every search.
    faults: [{ kind: 'reset', when: () => onSearch() }, ...(last ? [] : networkFaults(rng, plan.settings))],
  })
  const args = ['run', 'pipeline.yaml', '--log-level', 'trace', '--log-format', rng.pick(['json', 'pretty'])]
  if (disturbance?.kind === 'budget') args.push('--max-requests', String(disturbance.requests))
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      TMPDIR: folder,
      ...KEYS,
      SPILLWAY_BASE_URL: sandbox.baseUrl,
      ...(disturbance?.kind === 'disk'
        ? { NODE_OPTIONS: `--import ${DISK_FAULT}`, DISK_FAULT_ROOT: output, DISK_FAULT: disturbance.fault }
        : {}),
    },
  })
  let searches = 0
  onSearch = () => {
    if (++searches === disturbance?.at) interrupt(child, disturbance.kind)
    return false
  }
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
  }
  // A run takes less than a minute. After two minutes it counts as hung.
  const limit = setTimeout(() => {
    text += '\nsoak: no end after two minutes'
    child.kill('SIGKILL')
  }, 120_000)
  const [code, signal] = await new Promise((resolve) => child.on('close', (...how) => resolve(how)))
  clearTimeout(limit)
  await sandbox.close()
  const hung = text.includes('soak: no end')
  return { end: hung ? 'hung' : (signal ?? `exit ${code}`), requests: sandbox.requests, text }
}

function interrupt(child, kind) {
  if (kind === 'SIGKILL') child.kill('SIGKILL')
  else child.kill(kind.startsWith('SIGINT') ? 'SIGINT' : 'SIGTERM')
  if (kind === 'SIGINT twice') setTimeout(() => child.kill('SIGINT'), 30)
}

/** Number of pages that were served completely more than once. */
function repeated(requests, served) {
  let times = 0
  for (const { kind, body, status, fault } of requests) {
    if (kind !== 'search' || status !== 200 || fault !== null) continue
    const key = JSON.stringify(body)
    if (served.has(key)) times++
    served.add(key)
  }
  return times
}

/** Whether responses in flight or not yet on disk are lost: the next run may repeat these requests, but no others. */
function isCutOff(end, disturbance) {
  return end === 'SIGKILL' || disturbance?.kind === 'disk' || disturbance?.kind === 'SIGINT twice'
}

function isDocumented(end, disturbance) {
  switch (end) {
    case 'exit 0':
    // Partitions that fail because of the network, or a full disk.
    case 'exit 1':
      return true
    case 'exit 4':
      return disturbance?.kind === 'budget' || disturbance?.kind === 'quota'
    // The second signal may arrive after the process has removed its signal handler.
    case 'SIGINT':
    case 'exit 130':
      return disturbance?.kind.startsWith('SIGINT') ?? false
    case 'exit 143':
      return disturbance?.kind === 'SIGTERM'
    case 'SIGKILL':
      return disturbance?.kind === 'SIGKILL' || disturbance?.kind === 'disk'
    default:
      return false
  }
}

function describe(disturbance) {
  return disturbance === null
    ? 'no disturbance'
    : `${disturbance.kind} ${disturbance.fault ?? disturbance.at ?? disturbance.requests ?? ''}`
}

function tableRow(cells) {
  return cells.map((cell, i) => String(cell).padStart(i === 1 ? 34 : 11)).join(' ')
}
