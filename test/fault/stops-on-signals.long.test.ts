import { beforeAll, describe, expect, test } from 'vitest'
import type { Fault } from '../support/sandbox.ts'
import { faultFigures } from './figures.ts'
import {
  expectOrderlyEnd,
  expectResumed,
  LARGE,
  type Signal,
  SMALL,
  stopAfter,
  stopsInTrouble,
  type Trouble,
  withoutTimeouts,
} from './stopping.ts'
import { trial, type Undisturbed, undisturbed } from './trial.ts'

const figures = faultFigures('stopped by SIGHUP, SIGINT and SIGTERM in other waits')

let small: Undisturbed
let large: Undisturbed

beforeAll(async () => {
  small = await undisturbed(SMALL)
  large = await undisturbed(LARGE)
  // More than one page of each query.
  expect(large.searches).toBeGreaterThan(3)
})

describe.concurrent('a run that waits', () => {
  test.each<[Signal, string, Trouble]>([
    ['SIGINT', 'the rate limit', { env: { RATE: '0.001' } }],
    ['SIGTERM', 'the rate limit', { env: { RATE: '0.001' } }],
    ['SIGHUP', 'a response that stalls', { fault: { kind: 'stall' } }],
    ['SIGTERM', 'the end of a 429', { fault: { kind: 'status', status: 429, retryAfter: '600' } }],
    ['SIGINT', 'a response that stalls', { fault: { kind: 'stall' } }],
    ['SIGINT', 'a slow download', { fault: { kind: 'drip', bytes: 8, everyMs: 1000 } }],
  ])('%s during the wait for %s', (signal, _, trouble) =>
    stopsInTrouble(signal, trouble, { clean: small, figures }),
  )
})

test.each<Signal>(['SIGINT', 'SIGTERM'])('%s while large pages are decoded and written', async (signal) => {
  // Each query gets one page. The next request hangs, so the run cannot end before the signal.
  let trouble = true
  const faults: Fault[] = [{ kind: 'hang', when: ({ ordinal }) => trouble && ordinal > 2 }]
  const held = withoutTimeouts({ ...LARGE, sandbox: { ...LARGE.sandbox, faults } })
  await trial(held, async (attempt) => {
    const stopped = await stopAfter(attempt, signal, {}, ({ requests }) =>
      requests.some(({ items }) => items > 0),
    )
    figures.faults++
    expectOrderlyEnd(stopped, signal)
    trouble = false
    await expectResumed(attempt, held, { clean: large, figures })
  })
})
