import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { type BucketTrial, bucketTrial, CHANGES, expectSameInBucket } from './bucket-trial.ts'
import { faultFigures } from './figures.ts'
import { inLanes } from './support.ts'
import { ENDS, type Sample, scenario, tellingCalls, type Undisturbed, undisturbed } from './trial.ts'

const figures = faultFigures('in object storage')
const EXPORT = scenario({ format: 'csv', partitionBy: '[query, window]' })
// Every request that changes something: FAULT_S3=all npm run test:fault.
const SAMPLE: Sample = process.env.FAULT_S3 === 'all' ? () => true : ENDS

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
})

/** Where the requests of an undisturbed run go that change something: `PutObject acme/_manifest.json`. */
function changesOf({ double }: BucketTrial): string[] {
  return double.requests({ operation: CHANGES }).map(({ operation, key }) => `${operation} ${key}`)
}

describe.each(['in the bucket', 'on a local disk'] as const)('with the state %s', (state) => {
  test('an export killed at a request to the store ends as if nothing had happened', async () => {
    const calls = await bucketTrial(EXPORT, state, async (attempt) => {
      const ended = await attempt.run()
      expect(ended.code, ended.stderr).toBe(0)
      await expectSameInBucket(attempt, { scenario: EXPORT, clean, figures, about: '', interruptions: 0 })
      return changesOf(attempt)
    })
    const stops = tellingCalls(calls, SAMPLE)
    expect(stops.length).toBeGreaterThan(8)
    await inLanes([...stops.entries()], ([index, number]) =>
      bucketTrial(EXPORT, state, async (attempt) => {
        const fate = FATES[index % FATES.length]!
        const about = `${number}: ${calls[number - 1]}, ${fate}`
        const { letGo } = await killedAt(attempt, number, fate)
        const next = await attempt.runHere()
        letGo()
        // A request that comes so late must not have been heard.
        const settled = fate === 'comes late' ? await attempt.runHere() : next
        expect(settled, about).toMatchObject({ status: 'complete', error: null })
        await expectSameInBucket(attempt, { scenario: EXPORT, clean, figures, about, interruptions: 2 })
      }),
    )
    expect(figures.kills).toBeGreaterThan(8)
  }, 900_000)
})

/** What becomes of the request that the process was killed at. */
const FATES = ['is lost', 'is carried out', 'comes late'] as const

type Killed = {
  /** Lets a request that the network has held up go on. */
  letGo(): void
}

async function killedAt(
  { double, run }: BucketTrial,
  number: number,
  fate: (typeof FATES)[number],
): Promise<Killed> {
  const changes = { operation: CHANGES }
  const often = { skip: number - 1, times: 1 }
  let letGo: () => void = () => {}
  const held = new Promise<void>((resolve) => (letGo = resolve))
  let kill: (signal: NodeJS.Signals) => void = () => {}
  let isKilled = false
  if (fate === 'is lost') double.cues.fail(changes, { connection: 'reset-before', ...often })
  double.cues.before(
    changes,
    async () => {
      isKilled = true
      kill('SIGKILL')
      if (fate === 'comes late') await held
    },
    often,
  )
  const ended = await run({ onStart: (send) => (kill = send) })
  // It may end before it comes to this request: those of two chains interleave.
  expect([null, 0], ended.stderr).toContain(ended.code)
  if (isKilled) figures.kills++
  return { letGo }
}

test('a run of another machine that was taken over changes nothing when it wakes up', async () => {
  void delay
})
