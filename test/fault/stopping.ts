import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Fault, type LoggedRequest, repeatedSearches } from '../support/sandbox.ts'
import { withoutDeadline } from '../support/without-deadline.ts'
import type { Figures } from './figures.ts'
import type { Ended } from './support.ts'
import { expectSameResult, type Scenario, scenario, type Trial, trial, type Undisturbed } from './trial.ts'

export const SMALL = scenario({ format: 'parquet', partitionBy: '[query, window]' })
// Pages that take long to decode and to write.
export const LARGE: Scenario = {
  ...SMALL,
  yaml: SMALL.yaml
    .replace('page_size: 7', 'page_size: 2000')
    .replace('from: 2024-01-01, until: 2024-02-01', 'from: 2024-01-01, until: 2025-01-01')
    .replace('every: 8d', 'every: year')
    .replace('shard_rows: 15', 'shard_rows: 2000'),
  sandbox: { ...SMALL.sandbox, records: 6_000 },
}

/** Requests have all the time that they want: only what the test does ends a wait. */
export function withoutTimeouts(scenario: Scenario): Scenario {
  return { ...scenario, yaml: scenario.yaml.replace('service:\n', 'service:\n  timeout: 1h\n') }
}

export const CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
export type Signal = keyof typeof CODES

/** The cause of a wait, which is longer than any test. */
export type Trouble = {
  readonly fault?: Fault
  readonly env?: Readonly<Record<string, string>>
}

/** Ends a run by a signal while it waits, and completes the export in the next run. */
export async function stopsInTrouble(
  signal: Signal,
  { fault, env = {} }: Trouble,
  { clean, figures }: Known,
): Promise<void> {
  // The first searches succeed. Then the trouble begins, and it ends with the run.
  let trouble = true
  const when = ({ ordinal }: LoggedRequest): boolean => trouble && ordinal > 3
  const faults = fault === undefined ? [] : [{ ...fault, when }]
  const troubled = withoutTimeouts({ ...SMALL, sandbox: { ...SMALL.sandbox, faults } })
  await trial(troubled, async (attempt) => {
    const inTrouble = fault === undefined ? 1 : 4
    const stopped = await stopAfter(attempt, signal, env, ({ requests }) => requests.length >= inTrouble)
    figures.faults++
    expectOrderlyEnd(stopped, signal)
    const { status, requests } = await lastRun(attempt)
    expect(status).toBe('interrupted')
    // Only the rate limit delays further requests, so one was sent.
    const isPaced = fault === undefined
    if (isPaced) expect(requests).toBe(1)
    trouble = false
    await expectResumed(attempt, troubled, { clean, figures })
    // The first request may have been completed before the signal, or aborted.
    if (isPaced) expect(repeatedSearches(attempt.sandbox.requests)).toBeLessThanOrEqual(1)
  })
}

/** The result of an undisturbed export, and the totals of the test file. */
export type Known = { readonly clean: Undisturbed; readonly figures: Figures }

/**
 * Runs the export and sends the signal when `seen` holds for the sandbox. The process has no deadline, so it ends only
 * by ending its wait.
 */
export async function stopAfter(
  attempt: Trial,
  signal: Signal,
  env: Readonly<Record<string, string>>,
  seen: (sandbox: Trial['sandbox']) => boolean,
): Promise<Ended> {
  return attempt.run({
    env: { ...env, ...withoutDeadline(9000) },
    onStart: async (kill) => {
      while (!seen(attempt.sandbox)) await delay(1)
      // Long enough for a response to arrive and for the next wait to begin.
      await delay(100)
      kill(signal)
    },
  })
}

export function expectOrderlyEnd({ code, stdout, stderr }: Ended, signal: Signal): void {
  expect(code, stderr).toBe(CODES[signal])
  expect(stderr).toContain('Stopping')
  expect(stderr).not.toMatch(/^\s+at |unexpected error/m)
  expect(stdout).toContain('interrupted; what is committed stays')
  expect(stdout).toMatch(/go on +.*run pipeline\.yaml/)
}

async function lastRun({
  workspace,
}: Trial): Promise<{ readonly status: string; readonly requests: number }> {
  const { runs } = JSON.parse(await readFile(join(workspace.output, '_manifest.json'), 'utf8'))
  return runs.at(-1)
}

export async function expectResumed(
  attempt: Trial,
  scenario: Scenario,
  { clean, figures }: Known,
): Promise<void> {
  const troubled = attempt.sandbox.requests.length
  const resumed = await attempt.run()
  expect(resumed.code, resumed.stderr).toBe(0)
  expect(attempt.sandbox.requests.length).toBeGreaterThan(troubled)
  // Retries repeat requests as well, so the number of repeated requests is not limited here.
  const interruptions = Number.POSITIVE_INFINITY
  await expectSameResult(attempt, { scenario, clean, figures, about: 'resumed', interruptions })
}
