/**
 * `npm run soak -- --minutes N [--seed S]`: random pipelines against the sandbox, run after run, with random
 * network faults, kills, signals, full disks, expired tokens, budgets and quotas, until each is complete. Then
 * every row is compared with the data of the service. Exit 1 when a row was lost, came twice or leaked, or
 * a run ended in a way that is not documented.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startSandbox } from '../../dist/index.js'
import { judge } from './judge.mjs'
import { disturbance, networkFaults, random, scenario } from './scenario.mjs'

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

// After this many runs nothing disturbs a pipeline any more, so that it ends.
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
const ends = new Map()
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
  `runs by end: ${[...ends]
    .sort()
    .map(([end, times]) => `${end}: ${times}`)
    .join(', ')}`,
)
for (const line of wrong) console.log(`WRONG: ${line}`)
const failed = wrong.length + totals.lost + totals.doubled + totals.leaked + totals.too_many > 0
console.log(`${failed ? 'FAILED' : 'ok'}; again with: npm run soak -- --minutes ${minutes} --seed ${seed}`)
process.exitCode = failed ? 1 : 0

async function round(number) {
  const dice = random(seed + number * 7919)
  const plan = scenario(dice)
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
      const trouble = last ? null : disturbance(dice)
      if (trouble?.kind === 'other cursors') {
        cursorKey = `key-${tally.runs}`
        served.clear()
      }
      const { end, requests, text } = await run({ plan, dice, trouble, last, folder, output, cursorKey })
      printed.push(text)
      ends.set(end, (ends.get(end) ?? 0) + 1)
      tally.requests += requests.length
      const again = repeated(requests, served)
      tally.repeated += again
      if (again > 0 && tally.repeated > tally.allowed) {
        wrong.push(`round ${number}, run ${tally.runs} repeated ${again} pages, after: ${before}`)
      }
      if (end !== 'exit 0') tally.stops++
      before = `${describe(trouble)}, ${end}`
      if (isCutOff(end, trouble)) tally.allowed += plan.settings.concurrency
      if (!isDocumented(end, trouble))
        wrong.push(`round ${number}, run ${tally.runs} (${describe(trouble)}): ${end}\n${text}`)
      if (end === 'exit 0' || tally.runs === MAX_RUNS) break
    }
    if (tally.runs === MAX_RUNS) wrong.push(`round ${number} did not come to an end`)
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

/** One run of the command, disturbed by the trouble given. */
async function run({ plan, dice, trouble, last, folder, output, cursorKey }) {
  let onSearch = () => {}
  const sandbox = await startSandbox({
    ...plan.data,
    cursorKey,
    token: KEYS.SPILLWAY_TOKEN,
    apiKey: KEYS.SPILLWAY_API_KEY,
    ...(trouble?.kind === 'quota' ? { quota: trouble.requests + 1 } : {}),
    // A fault that never strikes, but sees every search.
    faults: [{ kind: 'reset', when: () => onSearch() }, ...(last ? [] : networkFaults(dice, plan.settings))],
  })
  const args = ['run', 'pipeline.yaml', '--log-level', 'trace', '--log-format', dice.pick(['json', 'pretty'])]
  if (trouble?.kind === 'budget') args.push('--max-requests', String(trouble.requests))
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      TMPDIR: folder,
      ...KEYS,
      SPILLWAY_BASE_URL: sandbox.baseUrl,
      ...(trouble?.kind === 'disk'
        ? { NODE_OPTIONS: `--import ${DISK_FAULT}`, DISK_FAULT_ROOT: output, DISK_FAULT: trouble.fault }
        : {}),
    },
  })
  let searches = 0
  onSearch = () => {
    if (++searches === trouble?.at) interrupt(child, trouble.kind)
    return false
  }
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
  }
  // No run takes a minute. One that takes two hangs.
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

/** Pages that were served in full a second time. */
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

/** After such an end, responses in flight or not yet on disk are requested again. After any other end none are. */
function isCutOff(end, trouble) {
  return end === 'SIGKILL' || trouble?.kind === 'disk' || trouble?.kind === 'SIGINT twice'
}

function isDocumented(end, trouble) {
  switch (end) {
    case 'exit 0':
    // Partitions that fail because of the network, or a full disk.
    case 'exit 1':
      return true
    case 'exit 4':
      return trouble?.kind === 'budget' || trouble?.kind === 'quota'
    // The second signal may come after the handler of the first is done and gone.
    case 'SIGINT':
    case 'exit 130':
      return trouble?.kind.startsWith('SIGINT') ?? false
    case 'exit 143':
      return trouble?.kind === 'SIGTERM'
    case 'SIGKILL':
      return trouble?.kind === 'SIGKILL' || trouble?.kind === 'disk'
    default:
      return false
  }
}

function describe(trouble) {
  return trouble === null
    ? 'no disturbance'
    : `${trouble.kind} ${trouble.fault ?? trouble.at ?? trouble.requests ?? ''}`
}

function tableRow(cells) {
  return cells.map((cell, i) => String(cell).padStart(i === 1 ? 34 : 11)).join(' ')
}
