import { rm } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { CHANGES } from '../s3/double/operations/index.ts'
import type { S3Double } from '../s3/double/server.ts'
import { BUCKET, mirror, startBucket } from '../support/bucket.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { concurrently, onAnotherMachine } from './support.ts'
import {
  ENDS,
  expectSameResult,
  type Sample,
  sampledCalls,
  scenario,
  type Trial,
  takeOver,
  trial,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

const struck = { kills: 0, stops: 0 }
const EXPORT = scenario({ format: 'csv' })
const SAMPLE: Sample = (index, count) => THOROUGH || ENDS(index, count)
/** The number of requests to try: one for each fate of a request. */
const KILLED = THOROUGH ? 3 : 1
/** The number of stopped runs. `former-owners-are-fenced-out` has one for each state that they find when they wake up. */
const STOPPED = 1

let clean: Undisturbed

type BucketTrial = Trial & { readonly double: S3Double }

/** The same export into a bucket. */
async function bucketTrial<T>(work: (trial: BucketTrial) => Promise<T>): Promise<T> {
  const { double, env: all } = await startBucket()
  // The pipeline file names the endpoint.
  const { AWS_ENDPOINT_URL_S3: _, ...env } = all
  const s3 = { endpoint: double.endpoint, region: double.region }
  const load = { ...EXPORT.parts.load, path: `s3://${BUCKET}/acme`, s3 }
  // For runs in this process. All doubles have the same credentials.
  Object.assign(process.env, env)
  delete process.env.AWS_ENDPOINT_URL_S3
  try {
    return await trial({ ...EXPORT, parts: { ...EXPORT.parts, load } }, (attempt) => {
      const run: Trial['run'] = (settings = {}) =>
        attempt.run({ ...settings, env: { ...env, ...settings.env } })
      return work({ ...attempt, double, run })
    })
  } finally {
    await double.close()
  }
}

/** Compares a finished export with the undisturbed one, and checks that no temporary object remains. */
async function expectSameInBucket(attempt: BucketTrial, about: string, interruptions: number): Promise<void> {
  const { double, workspace } = attempt
  await rm(workspace.output, { recursive: true, force: true })
  await mirror(double, 'acme', workspace.output)
  await expectSameResult(attempt, { scenario: EXPORT, clean, about, interruptions })
  expect(double.uploads(BUCKET), about).toEqual([])
  const left = [...double.objects(BUCKET).keys()].filter((key) => /_state\/(?:open|lock|ids)/.test(key))
  expect(left, about).toEqual([])
}

/**
 * Starts a run that gets a signal at one of its requests that change something, from 1 on.
 * @param isHeld whether the network holds that request until it is told to deliver it
 */
function struckAt(
  { double, run }: BucketTrial,
  number: number,
  signal: NodeJS.Signals,
  isHeld: boolean,
  env = {},
) {
  let send: (signal: NodeJS.Signals) => void = () => {}
  let deliver: () => void = () => {}
  const held = new Promise<void>((resolve) => (deliver = resolve))
  let strike: () => void = () => {}
  const struck = new Promise<boolean>((resolve) => (strike = () => resolve(true)))
  double.cues.before(
    { operation: CHANGES },
    async () => {
      send(signal)
      strike()
      if (isHeld) await held
    },
    { skip: number - 1, times: 1 },
  )
  const ended = run({ env, onStart: (kill) => (send = kill) })
  return {
    ended,
    /**
     * False: the run ended before, because requests of two chains interleave. The network must not hold a request of a
     * later run then.
     */
    isStruck: Promise.race([struck, ended.then(() => false)]),
    deliver,
    resume: () => send('SIGCONT'),
  }
}

/** Requests of an undisturbed run that change something: `PutObject acme/_manifest.json`. */
let calls: readonly string[]

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
  calls = await bucketTrial(async (attempt) => {
    await exits(0, attempt.run())
    const changes = attempt.double.requests({ operation: CHANGES })
    await expectSameInBucket(attempt, 'undisturbed', 0)
    return changes.map(({ operation, key }) => `${operation} ${key}`)
  })
})

/** What happens to the request during which the process is killed. */
const FATES = ['is lost', 'is carried out', 'arrives late'] as const

test('an export killed at a request to the store ends as if nothing had happened', async () => {
  const stops = some(sampledCalls(calls, SAMPLE), KILLED)
  expect(stops.length).toBeGreaterThanOrEqual(KILLED + (THOROUGH ? 2 : 0))
  await concurrently([...stops.entries()], ([index, number]) =>
    bucketTrial(async (attempt) => {
      const fate = FATES[index % FATES.length]!
      const about = `${number}: ${calls[number - 1]}, ${fate}`
      const where = { skip: number - 1, times: 1 }
      if (fate === 'is lost')
        attempt.double.cues.fail({ operation: CHANGES }, { connection: 'reset-before', ...where })
      const { ended, isStruck, deliver } = struckAt(attempt, number, 'SIGKILL', fate === 'arrives late')
      if (await isStruck) struck.kills++
      else deliver()
      expect([null, 0], about).toContain((await ended).code)
      const next = await attempt.runHere()
      deliver()
      // A request that arrives so late must have no effect.
      const settled = fate === 'arrives late' ? await attempt.runHere() : next
      expect(settled, about).toMatchObject({ status: 'complete', error: null })
      await expectSameInBucket(attempt, about, 2)
    }),
  )
  expect(struck.kills).toBeGreaterThanOrEqual(KILLED)
})

// The state of a process is read from /proc.
test.runIf(THOROUGH && process.platform === 'linux')(
  'a run of another machine that was taken over changes nothing when it wakes up',
  async () => {
    // Tests of stopped processes take long, so fewer are tried than of killed ones.
    const stops = some(sampledCalls(calls, SAMPLE), STOPPED)
    await concurrently([...stops.entries()], ([index, number]) =>
      bucketTrial(async (attempt) => {
        const about = `stopped at ${number}: ${calls[number - 1]}`
        const stopped = struckAt(attempt, number, 'SIGSTOP', true, onAnotherMachine())
        if (await stopped.isStruck) {
          // When it wakes up, either everything is done or half of it.
          await takeOver(attempt, index % 2 === 0 ? null : 3)
          const before = dataOf(attempt.double)
          stopped.resume()
          stopped.deliver()
          const late = await stopped.ended
          struck.stops++
          expect([0, 5], `${about}\n${late.stderr}`).toContain(late.code)
          if (late.code === 5) expect(dataOf(attempt.double), about).toEqual(before)
        } else stopped.deliver()
        expect(await attempt.runHere(), about).toMatchObject({ status: 'complete', error: null })
        await expectSameInBucket(attempt, about, Number.POSITIVE_INFINITY)
      }),
    )
    expect(struck.stops).toBeGreaterThanOrEqual(STOPPED)
  },
)

/**
 * The objects that readers and later runs use. What is sealed and not in the log is removed by the next run; what is in
 * the log after the claim of another owner counts for nothing.
 */
function dataOf(double: S3Double): readonly (readonly [key: string, etag: string])[] {
  return [...double.objects(BUCKET)]
    .filter(([key]) => !/_state\/(?:lock|log|open|sealed)/.test(key))
    .map(([key, { etag }]) => [key, etag] as const)
    .sort()
}
