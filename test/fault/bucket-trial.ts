import { rm } from 'node:fs/promises'
import { expect } from 'vitest'
import type { S3Double } from '../s3/double/server.ts'
import { BUCKET, mirror, startBucket } from '../support/bucket.ts'
import type { Ended, RunArgs } from './support.ts'
import { type Expectations, expectSameResult, type Scenario, type Trial, trial } from './trial.ts'

export type BucketTrial = Trial & {
  readonly double: S3Double
  readonly env: Readonly<Record<string, string>>
}

/** Requests to the store that change a data set. */
export const CHANGES = [
  'PutObject',
  'CopyObject',
  'DeleteObject',
  'CreateMultipartUpload',
  'UploadPart',
  'CompleteMultipartUpload',
  'AbortMultipartUpload',
] as const

/** The same export into a bucket. */
export async function bucketTrial<T>(
  scenario: Scenario,
  work: (trial: BucketTrial) => Promise<T>,
): Promise<T> {
  const { double, env: all } = await startBucket()
  // The pipeline file names the endpoint.
  const { AWS_ENDPOINT_URL_S3: _, ...env } = all
  const location = `path: s3://${BUCKET}/acme, s3: { endpoint: "${double.endpoint}", region: ${double.region} },`
  const yaml = scenario.yaml.replace('path: out,', location)
  // For runs in this process. All doubles have the same credentials.
  Object.assign(process.env, env)
  delete process.env.AWS_ENDPOINT_URL_S3
  try {
    return await trial({ ...scenario, yaml }, (attempt) => {
      const command = (name: string, settings: Partial<RunArgs> = {}): Promise<Ended> =>
        attempt.command(name, { ...settings, env: { ...env, ...settings.env } })
      return work({ ...attempt, double, env, command, run: (settings) => command('run', settings) })
    })
  } finally {
    await double.close()
  }
}

/** What happens to the request during which the process is killed. */
export const FATES = ['is lost', 'is carried out', 'arrives late'] as const

type Killed = {
  /** False: the command ended before. */
  readonly isKilled: boolean
  /** Delivers the request that the network holds. */
  deliver(): void
}

/** Runs a command, and kills it at one of its requests that change something. @param number from 1 on */
export async function killedAt(
  { double }: BucketTrial,
  number: number,
  fate: (typeof FATES)[number],
  run: (settings: Partial<RunArgs>) => Promise<Ended>,
): Promise<Killed> {
  const changes = { operation: CHANGES }
  const often = { skip: number - 1, times: 1 }
  let deliver: () => void = () => {}
  const held = new Promise<void>((resolve) => (deliver = resolve))
  let kill: (signal: NodeJS.Signals) => void = () => {}
  let isKilled = false
  if (fate === 'is lost') double.cues.fail(changes, { connection: 'reset-before', ...often })
  double.cues.before(
    changes,
    async () => {
      isKilled = true
      kill('SIGKILL')
      if (fate === 'arrives late') await held
    },
    often,
  )
  const ended = await run({ onStart: (send) => (kill = send) })
  // The run may end before this request, because those of two chains interleave.
  expect([null, 0], ended.stderr).toContain(ended.code)
  return { deliver, isKilled }
}

/** Compares a finished export with the undisturbed one, and checks that no temporary object remains. */
export async function expectSameInBucket(attempt: BucketTrial, expectations: Expectations): Promise<void> {
  const { double, workspace } = attempt
  await rm(workspace.output, { recursive: true, force: true })
  await mirror(double, 'acme', workspace.output)
  await expectSameResult(attempt, expectations)
  expect(double.uploads(BUCKET), expectations.about).toEqual([])
  const left = [...double.objects(BUCKET).keys()].filter((key) => /_state\/(?:open|lock|ids)/.test(key))
  expect(left, expectations.about).toEqual([])
}
