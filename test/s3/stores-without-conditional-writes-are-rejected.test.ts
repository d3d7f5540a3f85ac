import { CreateBucketCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { bucketStore } from '../../src/bucket/index.ts'
import type { DataSetLocation, Store } from '../../src/core/index.ts'
import { s3Driver } from '../../src/s3/index.ts'
import { takeLock } from '../../src/state/lock/lock.ts'
import { write } from '../disk/temporary-store.ts'
import { BUCKET } from '../support/bucket.ts'
import { type S3Double, startS3Double } from './double/server.ts'
import { refusal } from './each-in-a-bucket.ts'
import { startSecondServer } from './second-server.ts'

afterEach(() => vi.unstubAllEnvs())

async function storeThat(ignoredConditions: readonly string[]): Promise<S3Double> {
  const double = await startS3Double({ buckets: [BUCKET], ignoredConditions })
  onTestFinished(() => double.close())
  vi.stubEnv('AWS_ACCESS_KEY_ID', double.credentials[0]!.accessKeyId)
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', double.credentials[0]!.secretAccessKey)
  return double
}

function locationIn({ endpoint, region }: S3Double): Extract<DataSetLocation, { kind: 's3' }> {
  return {
    kind: 's3',
    bucket: BUCKET,
    prefix: 'team/set',
    endpoint,
    region,
    pathStyle: true,
    allowHttp: false,
  }
}

async function hold(store: Store): Promise<void> {
  const clock = {
    now: Date.now,
    monotonicMs: () => performance.now(),
    sleep: (_ms: number, stop: AbortSignal) =>
      new Promise<void>((_, reject) => stop.addEventListener('abort', () => reject(stop.reason))),
  }
  const stop = new AbortController().signal
  const lock = await takeLock(store, { clock, stop, fresh: false, warn: () => {} })
  await lock.release()
}

describe.each([
  ['If-None-Match', ['if-none-match']],
  ['If-Match', ['if-match']],
])('a store that ignores %s', (header, ignoredConditions) => {
  it('is rejected when a data set is created there, with nothing left behind', async () => {
    const double = await storeThat(ignoredConditions)
    const error = await refusal(hold(bucketStore(s3Driver(locationIn(double)))))
    expect(error).toMatchObject({ kind: 'config', where: `s3://${BUCKET}/team/set` })
    expect(error.what).toContain(`ignores ${header}`)
    expect(double.objects(BUCKET).size).toBe(0)
  })
})

it('is rejected also if it is another server that ignores both', async () => {
  const double = await storeThat([])
  const server = await startSecondServer(false)
  onTestFinished(() => server.close())
  const location = { ...locationIn(double), endpoint: server.endpoint }
  const [credentials] = double.credentials
  const client = new S3Client({
    endpoint: server.endpoint,
    region: double.region,
    forcePathStyle: true,
    credentials: credentials!,
  })
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
  const error = await refusal(hold(bucketStore(s3Driver(location))))
  expect(error.what).toContain('ignores If-None-Match')
  const { KeyCount } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET }))
  expect(KeyCount).toBe(0)
  client.destroy()
})

it('is rejected also if it does not know conditions', async () => {
  const double = await storeThat([])
  double.cues.fail(
    { operation: 'PutObject', where: ({ headers }) => headers.has('if-none-match') },
    { code: 'NotImplemented', times: 9 },
  )
  const error = await refusal(hold(bucketStore(s3Driver(locationIn(double)))))
  expect(error).toMatchObject({ kind: 'config' })
  expect(error.what).toContain('does not know If-None-Match')
  expect(double.objects(BUCKET).size).toBe(0)
})

it('is not tested again once a data set exists', async () => {
  const double = await storeThat([])
  const store = bucketStore(s3Driver(locationIn(double)))
  const puts = async (): Promise<number> => {
    const before = double.requests({ operation: 'PutObject' }).length
    await hold(store)
    return double.requests({ operation: 'PutObject' }).length - before
  }
  const first = await puts()
  await write(store, '_state/checkpoint.jsonl', '{}')
  expect(await puts()).toBe(first - 2)
})
