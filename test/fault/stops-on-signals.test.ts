import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Fault } from '../support/sandbox.ts'
import { withoutDeadline } from '../support/without-deadline.ts'
import { faultFigures } from './figures.ts'
import {
  CODES,
  expectResumed,
  type Signal,
  SMALL,
  stopsInTrouble,
  type Trouble,
  withoutTimeouts,
} from './stopping.ts'
import { trial, type Undisturbed, undisturbed } from './trial.ts'

const figures = faultFigures('stopped by SIGHUP, SIGINT and SIGTERM')

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(SMALL)
})

describe.concurrent('a run that waits', () => {
  test.each<[Signal, string, Trouble]>([
    ['SIGHUP', 'the rate limit', { env: { RATE: '0.001' } }],
    ['SIGINT', 'a retry', { fault: { kind: 'status', status: 503, retryAfter: '600' } }],
    ['SIGTERM', 'a response that never begins', { fault: { kind: 'hang' } }],
  ])('%s during the wait for %s', (signal, _, trouble) => stopsInTrouble(signal, trouble, { clean, figures }))

  test('a second signal ends it at once, and no row is lost', async () => {
    let trouble = true
    const faults: Fault[] = [{ kind: 'stall', when: ({ ordinal }) => trouble && ordinal > 3 }]
    const stalled = withoutTimeouts({ ...SMALL, sandbox: { ...SMALL.sandbox, faults } })
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
      figures.faults++
      expect(stopped).toMatchObject({ code: CODES.SIGTERM, stdout: '' })
      trouble = false
      await expectResumed(attempt, stalled, { clean, figures })
    })
  })
})
