import { S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, onTestFinished, vi } from 'vitest'
import { bucketStore } from '../../src/bucket/index.ts'
import type { DataSetLocation, Store } from '../../src/core/index.ts'
import { s3Driver } from '../../src/s3/index.ts'
import { BUCKET, startBucket } from '../support/bucket.ts'
import type { S3Double } from './double/server.ts'

export type BucketLocation = Extract<DataSetLocation, { kind: 's3' }>

export type InABucket = {
  readonly double: S3Double
  readonly env: Readonly<Record<string, string>>
  /** A data set below `set/`, but for the differences. */
  location(changes?: Partial<BucketLocation>): BucketLocation
  open(changes?: Partial<BucketLocation>): Store
  /** Another client of the store, or of one at another address, until the test ends. */
  client(endpoint?: string): S3Client
}

/** A bucket for each test of a file, or of a suite, which the process finds by its environment, as users do. */
export function eachInABucket(options: Parameters<typeof startBucket>[0] = {}): InABucket {
  let started: Awaited<ReturnType<typeof startBucket>>
  beforeEach(async () => {
    started = await startBucket(options)
    for (const [name, value] of Object.entries(started.env)) vi.stubEnv(name, value)
  })
  afterEach(async () => {
    vi.unstubAllEnvs()
    await started.double.close()
  })
  const here: InABucket = {
    get double() {
      return started.double
    },
    get env() {
      return started.env
    },
    location: (changes = {}) => ({
      kind: 's3',
      bucket: BUCKET,
      prefix: 'set',
      endpoint: started.double.endpoint,
      region: started.double.region,
      pathStyle: true,
      allowHttp: false,
      ...changes,
    }),
    open: (changes) => bucketStore(s3Driver(here.location(changes))),
    client(endpoint = started.double.endpoint) {
      const { region, credentials } = started.double
      const client = new S3Client({ endpoint, region, credentials: credentials[0]!, forcePathStyle: true })
      onTestFinished(() => client.destroy())
      return client
    },
  }
  return here
}
