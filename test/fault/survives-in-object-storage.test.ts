import { rm } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { CHANGES } from '../s3/double/operations/index.ts'
import type { S3Double } from '../s3/double/server.ts'
import { BUCKET, mirror, startBucket } from '../support/bucket.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { concurrently } from './support.ts'
import {
  ENDS,
  expectSameResult,
  type Sample,
  sampledCalls,
  scenario,
  type Trial,
  trial,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

const EXPORT = scenario({ format: 'csv' })
const SAMPLE: Sample = (index, count) => THOROUGH || ENDS(index, count)
/** The number of requests to try: one for each fate of a request. */
const KILLED = THOROUGH ? 3 : 1

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

// What a former owner sends later, which another has taken over from: `test/store/conformance`.
test('an export killed at a request to the store ends as if nothing had happened', async () => {
  const stops = some(sampledCalls(calls, SAMPLE), KILLED)
  expect(stops.length).toBeGreaterThanOrEqual(KILLED + (THOROUGH ? 2 : 0))
  let kills = 0
  await concurrently([...stops.entries()], ([index, number]) =>
    bucketTrial(async (attempt) => {
      const { cues } = attempt.double
      const fate = FATES[index % FATES.length]!
      const about = `${number}: ${calls[number - 1]}, ${fate}`
      const where = { skip: number - 1, times: 1 }
      if (fate === 'is lost') cues.fail({ operation: CHANGES }, { connection: 'reset-before', ...where })
      let kill: () => void = () => {}
      let deliver: () => void = () => {}
      const late = new Promise<void>((resolve) => (deliver = resolve))
      cues.before(
        { operation: CHANGES },
        async () => {
          kills++
          kill()
          if (fate === 'arrives late') await late
        },
        where,
      )
      const ended = await attempt.run({ onStart: (send) => (kill = () => send('SIGKILL')) })
      // Requests of two chains interleave, so it may end before. The network must not hold one of a later run then.
      if (ended.signal !== 'SIGKILL') deliver()
      expect([null, 0], about).toContain(ended.code)
      const next = await attempt.runHere()
      deliver()
      // A request that arrives so late must have no effect.
      const settled = fate === 'arrives late' ? await attempt.runHere() : next
      expect(settled, about).toMatchObject({ status: 'complete', error: null })
      await expectSameInBucket(attempt, about, 2)
    }),
  )
  expect(kills).toBeGreaterThanOrEqual(KILLED)
})
