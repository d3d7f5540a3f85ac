import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import type { S3Double } from '../s3/double/server.ts'
import { BUCKET } from '../support/bucket.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  type BucketTrial,
  bucketTrial,
  CHANGES,
  expectSameInBucket,
  FATES,
  killedAt,
} from './bucket-trial.ts'
import { faultFigures } from './figures.ts'
import { concurrently, type Ended, onAnotherMachine } from './support.ts'
import {
  ENDS,
  type Sample,
  sampledCalls,
  scenario,
  takeOver,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

const figures = faultFigures('in object storage')
const EXPORT = scenario({ format: 'csv', partitionBy: '[query, window]' })
const SAMPLE: Sample = (index, count) => THOROUGH || ENDS(index, count)
/** The number of requests to try: one for each fate of a request. */
const KILLED = THOROUGH ? 3 : 1
/** The number of stopped runs. `former-owners-are-fenced-out` has one for each state that they find when they wake up. */
const STOPPED = 1

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
})

/** The calls of a run, which two tests need. */
let inTheBucket: readonly string[] | null = null

/** Requests of an undisturbed run that change something: `PutObject acme/_manifest.json`. */
function changesOf({ double }: BucketTrial): string[] {
  return double.requests({ operation: CHANGES }).map(({ operation, key }) => `${operation} ${key}`)
}

test('an export killed at a request to the store ends as if nothing had happened', async () => {
  const calls = await bucketTrial(EXPORT, async (attempt) => {
    await exits(0, attempt.run())
    await expectSameInBucket(attempt, { scenario: EXPORT, clean, figures, about: '', interruptions: 0 })
    return changesOf(attempt)
  })
  inTheBucket = calls
  const stops = some(sampledCalls(calls, SAMPLE), KILLED)
  expect(stops.length).toBeGreaterThanOrEqual(KILLED + (THOROUGH ? 2 : 0))
  await concurrently([...stops.entries()], ([index, number]) =>
    bucketTrial(EXPORT, async (attempt) => {
      const fate = FATES[index % FATES.length]!
      const about = `${number}: ${calls[number - 1]}, ${fate}`
      const { deliver, isKilled } = await killedAt(attempt, number, fate, attempt.run)
      if (isKilled) figures.kills++
      const next = await attempt.runHere()
      deliver()
      // A request that arrives so late must have no effect.
      const settled = fate === 'arrives late' ? await attempt.runHere() : next
      expect(settled, about).toMatchObject({ status: 'complete', error: null })
      await expectSameInBucket(attempt, { scenario: EXPORT, clean, figures, about, interruptions: 2 })
    }),
  )
  expect(figures.kills).toBeGreaterThanOrEqual(KILLED)
})

// The state of a process is read from /proc.
test.runIf(THOROUGH && process.platform === 'linux')(
  'a run of another machine that was taken over changes nothing when it wakes up',
  async () => {
    const calls =
      inTheBucket ??
      (await bucketTrial(EXPORT, async (attempt) => {
        await attempt.run()
        return changesOf(attempt)
      }))
    // Tests of stopped processes take long, so fewer are tried than of killed ones.
    const stops = some(sampledCalls(calls, SAMPLE), STOPPED)
    await concurrently([...stops.entries()], ([index, number]) =>
      bucketTrial(EXPORT, async (attempt) => {
        const about = `stopped at ${number}: ${calls[number - 1]}`
        const { double } = attempt
        const stopped = await stoppedAt(attempt, number)
        if (stopped.isStopped) {
          // When it wakes up, either everything is done or half of it.
          await takeOver(attempt, index % 2 === 0 ? null : 3)
          const before = dataOf(double)
          stopped.resume()
          const late = await stopped.ended
          figures.faults++
          expect([0, 5], `${about}\n${late.stderr}`).toContain(late.code)
          if (late.code === 5) expect(dataOf(double), about).toEqual(before)
        }
        const last = await attempt.runHere()
        expect(last, about).toMatchObject({ status: 'complete', error: null })
        const interruptions = Number.POSITIVE_INFINITY
        await expectSameInBucket(attempt, { scenario: EXPORT, clean, figures, about, interruptions })
      }),
    )
    expect(figures.faults).toBeGreaterThanOrEqual(STOPPED)
  },
)

type Stopped = { readonly isStopped: boolean; resume(): void; readonly ended: Promise<Ended> }

/** Starts a run of another machine that stops at a request, which the network holds until the run continues. */
async function stoppedAt({ double, run }: BucketTrial, number: number): Promise<Stopped> {
  let deliver: () => void = () => {}
  const held = new Promise<void>((resolve) => (deliver = resolve))
  let send: (signal: NodeJS.Signals) => void = () => {}
  let isStopped = false
  double.cues.before(
    { operation: CHANGES },
    async () => {
      send('SIGSTOP')
      isStopped = true
      await held
    },
    { skip: number - 1, times: 1 },
  )
  let isOver = false
  const ended = run({ env: onAnotherMachine(), onStart: (kill) => (send = kill) }).finally(
    () => (isOver = true),
  )
  while (!isOver && !isStopped) await delay(5)
  const resume = (): void => {
    send('SIGCONT')
    deliver()
  }
  return { isStopped, resume, ended }
}

/** The objects that readers and later runs use. What is sealed and not in the log is removed by the next run. */
function dataOf(double: S3Double): readonly (readonly [key: string, etag: string])[] {
  return [...double.objects(BUCKET)]
    .filter(([key]) => !/_state\/(?:lock|open|sealed)/.test(key))
    .map(([key, { etag }]) => [key, etag] as const)
    .sort()
}
