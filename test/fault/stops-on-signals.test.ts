import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { type Fault, type LoggedRequest, repeatedSearches, searchesOf } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { withoutDeadline } from '../support/without-deadline.ts'
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

const SMALL = scenario({ format: 'parquet' })
// Pages that take long to decode and to write.
const LARGE: Scenario = {
  ...SMALL,
  parts: {
    extract: {
      ...{ ...SMALL.parts.extract, page_size: 2000 },
      windows: { from: '2024-01-01', until: '2025-01-01', every: 'year' },
    },
    load: { ...SMALL.parts.load, shard_rows: 2000 },
  },
  sandbox: { ...SMALL.sandbox, records: 6_000 },
}

/** Requests have all the time that they want: only what the test does ends a wait. */
function withoutTimeouts(scenario: Scenario, faults: readonly Fault[]): Scenario {
  const parts = { ...scenario.parts, service: { timeout: '1h' } }
  return { ...scenario, parts, sandbox: { ...scenario.sandbox, faults } }
}

const CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
type Signal = keyof typeof CODES

/** The cause of a wait, which is longer than any test. */
type Trouble = Fault | 'the rate limit'

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(SMALL)
})

const WAITS: readonly [Signal, string, Trouble][] = [
  ['SIGHUP', 'the rate limit', 'the rate limit'],
  ['SIGTERM', 'a response that never begins', { kind: 'hang' }],
  ['SIGINT', 'a retry', { kind: 'status', status: 503, retryAfter: '600' }],
  ['SIGHUP', 'a response that stalls', { kind: 'stall' }],
  ['SIGTERM', 'the end of a 429', { kind: 'status', status: 429, retryAfter: '600' }],
  ['SIGINT', 'a slow download', { kind: 'drip', bytes: 8, everyMs: 1000 }],
]

describe.concurrent('a run that waits', () => {
  test.each(THOROUGH ? WAITS : WAITS.slice(0, 1))('%s during the wait for %s', (signal, _, trouble) =>
    stopsInTrouble(signal, trouble),
  )

  test('a second signal ends it at once, and no row is lost', async () => {
    let trouble = true
    const faults: Fault[] = [{ kind: 'stall', when: ({ ordinal }) => trouble && ordinal > 3 }]
    const stalled = withoutTimeouts(SMALL, faults)
    await trial(stalled, async (attempt) => {
      let send: (signal: NodeJS.Signals) => void = () => {}
      let isStopping = false
      const stopped = await attempt.run({
        // The first signal alone would wait for the response, which never comes.
        env: withoutDeadline(5000, 9000),
        onStart: async (kill) => {
          send = kill
          while (attempt.sandbox.requests.length < 4) await delay(5)
          kill('SIGINT')
        },
        onStderr: (text) => {
          if (isStopping || !text.includes('Stopping')) return
          isStopping = true
          send('SIGTERM')
        },
      })
      expect(stopped).toMatchObject({ code: CODES.SIGTERM, stdout: '' })
      trouble = false
      await expectResumed(attempt, stalled, clean)
    })
  })
})

test.runIf(THOROUGH).each<Signal>(['SIGINT', 'SIGTERM'])(
  '%s while large pages are decoded and written',
  async (signal) => {
    const large = await undisturbed(LARGE)
    // More than one page of each query.
    expect(large.searches).toBeGreaterThan(3)
    // Each query gets one page. The next request hangs, so the run cannot end before the signal.
    let trouble = true
    const faults: Fault[] = [{ kind: 'hang', when: ({ ordinal }) => trouble && ordinal > 2 }]
    const held = withoutTimeouts(LARGE, faults)
    await trial(held, async (attempt) => {
      const stopped = await stopAfter(attempt, signal, ({ requests }) =>
        requests.some(({ items }) => items > 0),
      )
      expectOrderlyEnd(stopped, signal)
      trouble = false
      await expectResumed(attempt, held, large)
    })
  },
)

/** Ends a run by a signal while it waits, and completes the export in the next run. */
async function stopsInTrouble(signal: Signal, cause: Trouble): Promise<void> {
  // The first searches succeed. Then the trouble begins, and it ends with the run.
  let trouble = true
  const when = ({ ordinal }: LoggedRequest): boolean => trouble && ordinal > 3
  // Only the rate limit delays further requests, so one is sent.
  const isPaced = cause === 'the rate limit'
  const faults = isPaced ? [] : [{ ...cause, when }]
  const troubled = withoutTimeouts(SMALL, faults)
  await trial(troubled, async (attempt) => {
    const slow = { ...troubled.parts.service, requests_per_second: 0.001 }
    if (isPaced) await attempt.workspace.write({ ...troubled.parts, service: slow })
    const inTrouble = isPaced ? 1 : 4
    const stopped = await stopAfter(
      attempt,
      signal,
      ({ requests }) => searchesOf(requests).length >= inTrouble,
    )
    expectOrderlyEnd(stopped, signal)
    const { status, requests } = (await attempt.workspace.manifest()).runs.at(-1)!
    expect(status).toBe('interrupted')
    if (isPaced) expect(requests).toBe(1)
    trouble = false
    await attempt.workspace.write(troubled.parts)
    await expectResumed(attempt, troubled, clean)
    // The first request may have been completed before the signal, or aborted.
    if (isPaced) expect(repeatedSearches(attempt.sandbox.requests)).toBeLessThanOrEqual(1)
  })
}

/**
 * Runs the export and sends the signal when `seen` holds for the sandbox. The process has no deadline, so it ends only
 * by ending its wait.
 */
async function stopAfter(
  attempt: Trial,
  signal: Signal,
  seen: (sandbox: Trial['sandbox']) => boolean,
): Promise<Ended> {
  return attempt.run({
    env: withoutDeadline(9000),
    onStart: async (kill) => {
      while (!seen(attempt.sandbox)) await delay(1)
      // Long enough for a response to arrive and for the next wait to begin.
      await delay(100)
      kill(signal)
    },
  })
}

function expectOrderlyEnd({ code, stdout, stderr }: Ended, signal: Signal): void {
  expect(code, stderr).toBe(CODES[signal])
  expect(stderr).toContain('Stopping')
  expect(stderr).not.toMatch(/^\s+at |unexpected error/m)
  expect(stdout).toContain('interrupted; what is committed stays')
  expect(stdout).toMatch(/go on +.*run pipeline\.yaml/)
}

async function expectResumed(attempt: Trial, scenario: Scenario, clean: Undisturbed): Promise<void> {
  const troubled = attempt.sandbox.requests.length
  await exits(0, attempt.run())
  expect(attempt.sandbox.requests.length).toBeGreaterThan(troubled)
  // Retries repeat requests as well, so the number of repeated requests is not limited here.
  const interruptions = Number.POSITIVE_INFINITY
  await expectSameResult(attempt, { scenario, clean, about: 'resumed', interruptions })
}
