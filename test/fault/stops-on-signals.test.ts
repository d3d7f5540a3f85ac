import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import type { Fault, LoggedRequest } from '../../src/sandbox/index.ts'
import { faultFigures } from './figures.ts'
import type { Ended } from './support.ts'
import {
  expectSameResult,
  type Scenario,
  scenario,
  type Trial,
  trial,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

const figures = faultFigures('stopped by SIGHUP, SIGINT and SIGTERM')

const SMALL = scenario({ format: 'parquet', partitionBy: '[query, window]' })
// Pages that take long to decode and to write.
const LARGE: Scenario = {
  ...SMALL,
  yaml: SMALL.yaml
    .replace('page_size: 7', 'page_size: 10000')
    .replace('from: 2024-01-01, until: 2024-02-01', 'from: 2024-01-01, until: 2025-01-01')
    .replace('every: 8d', 'every: year')
    .replace('shard_rows: 15', 'shard_rows: 4000'),
  sandbox: { ...SMALL.sandbox, records: 12_000 },
}

let small: Undisturbed
let large: Undisturbed

beforeAll(async () => {
  small = await undisturbed(SMALL)
  large = await undisturbed(LARGE)
})

const CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
type Signal = keyof typeof CODES

// Ten seconds are promised, and some are for a machine under load; every wait below is longer than that.
const LIMIT_MS = 15_000

type Trouble = {
  readonly fault?: Fault
  readonly env?: Readonly<Record<string, string>>
}

test.each<[Signal, string, Trouble]>([
  ['SIGINT', 'its pace', { env: { RATE: '0.05' } }],
  ['SIGHUP', 'an answer that stalls', { fault: { kind: 'stall' } }],
  ['SIGTERM', 'its pace', { env: { RATE: '0.05' } }],
  ['SIGINT', 'a retry', { fault: { kind: 'status', status: 503 } }],
  ['SIGTERM', 'the end of a 429', { fault: { kind: 'status', status: 429, retryAfter: '60' } }],
  ['SIGINT', 'an answer that stalls', { fault: { kind: 'stall' } }],
  ['SIGTERM', 'an answer that never begins', { fault: { kind: 'hang' } }],
  ['SIGINT', 'a slow download', { fault: { kind: 'drip', bytes: 8, everyMs: 50 } }],
])('%s during the wait for %s', async (signal, _, { fault, env = {} }) => {
  // The first searches pass, then the trouble begins, and ends with the run.
  let trouble = true
  const when = ({ ordinal }: LoggedRequest): boolean => trouble && ordinal > 3
  const faults = fault === undefined ? [] : [{ ...fault, when }]
  const troubled = { ...SMALL, sandbox: { ...SMALL.sandbox, faults } }
  await trial(troubled, async (attempt) => {
    const inTrouble = fault === undefined ? 1 : 4
    const stopped = await stopAfter(attempt, signal, env, ({ requests }) => requests.length >= inTrouble)
    expectOrderlyEnd(stopped, signal)
    expect(await lastRun(attempt)).toBe('interrupted')
    trouble = false
    await expectResumed(attempt, troubled, small)
  })
})

test.each<Signal>(['SIGINT', 'SIGTERM'])('%s while large pages are decoded and written', async (signal) => {
  await trial(LARGE, async (attempt) => {
    const stopped = await stopAfter(attempt, signal, {}, ({ requests }) =>
      requests.some(({ items }) => items > 0),
    )
    expectOrderlyEnd(stopped, signal)
    await expectResumed(attempt, LARGE, large)
  })
})

test('a second signal ends a run at once, and nothing is lost', async () => {
  let trouble = true
  const faults: Fault[] = [{ kind: 'stall', when: ({ ordinal }) => trouble && ordinal > 3 }]
  const stalled = { ...SMALL, sandbox: { ...SMALL.sandbox, faults } }
  await trial(stalled, async (attempt) => {
    let secondAt = 0
    const stopped = await attempt.run({
      onStart: async (kill) => {
        while (attempt.sandbox.requests.length < 4) await delay(5)
        kill('SIGINT')
        await delay(300)
        secondAt = performance.now()
        kill('SIGTERM')
      },
    })
    figures.faults++
    expect(stopped).toMatchObject({ code: CODES.SIGTERM, stdout: '' })
    // Less than the five seconds that the first signal leaves to an answer.
    expect(performance.now() - secondAt).toBeLessThan(4500)
    trouble = false
    await expectResumed(attempt, stalled, small)
  })
})

type Stopped = Ended & { readonly tookMs: number }

/** Runs the export and sends the signal once the sandbox has seen what it is to see. */
async function stopAfter(
  attempt: Trial,
  signal: Signal,
  env: Readonly<Record<string, string>>,
  seen: (sandbox: Trial['sandbox']) => boolean,
): Promise<Stopped> {
  let sentAt = 0
  const ended = await attempt.run({
    env,
    onStart: async (kill) => {
      while (!seen(attempt.sandbox)) await delay(1)
      // Long enough for an answer to arrive and for the next wait to begin.
      await delay(100)
      sentAt = performance.now()
      kill(signal)
    },
  })
  figures.faults++
  return { ...ended, tookMs: performance.now() - sentAt }
}

function expectOrderlyEnd({ code, stdout, stderr, tookMs }: Stopped, signal: Signal): void {
  expect(code, stderr).toBe(CODES[signal])
  expect(tookMs).toBeLessThan(LIMIT_MS)
  expect(stderr).toContain('Stopping')
  expect(stderr).not.toMatch(/^\s+at |not foreseen/m)
  expect(stdout).toContain('interrupted; what is committed stays')
  expect(stdout).toMatch(/go on +.*run pipeline\.yaml/)
}

async function lastRun({ place }: Trial): Promise<string> {
  const { runs } = JSON.parse(await readFile(join(place.output, '_manifest.json'), 'utf8'))
  return runs.at(-1).status
}

async function expectResumed(attempt: Trial, scenario: Scenario, clean: Undisturbed): Promise<void> {
  const troubled = attempt.sandbox.requests.length
  const resumed = await attempt.run()
  expect(resumed.code, resumed.stderr).toBe(0)
  expect(attempt.sandbox.requests.length).toBeGreaterThan(troubled)
  // Retries repeat a request as well, so here they are not held against the number of pages in flight.
  const interruptions = Number.POSITIVE_INFINITY
  await expectSameResult(attempt, { scenario, clean, figures, about: 'resumed', interruptions })
}
