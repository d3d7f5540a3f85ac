import { S3Client } from '@aws-sdk/client-s3'
import { beforeEach, onTestFinished } from 'vitest'
import { bucketStore } from '../../src/bucket/index.ts'
import type { DataSetLocation, Store } from '../../src/core/index.ts'
import { s3Driver } from '../../src/s3/index.ts'
import { BUCKET, bucketHere } from '../support/bucket.ts'
import type { S3DoubleOptions } from './double/server.ts'
import { CREDENTIALS } from './servers.ts'

export type BucketLocation = Extract<DataSetLocation, { kind: 's3' }>

/** A bucket for each test of a file, or of a suite, which the process finds by its environment, as users do. */
export function eachInABucket(options: S3DoubleOptions = {}) {
  let started: Awaited<ReturnType<typeof bucketHere>>
  beforeEach(async () => {
    started = await bucketHere(options)
  })
  return {
    get double() {
      return started.double
    },
    get env() {
      return started.env
    },
    /** A data set below `set/`, but for the differences. */
    open(changes: Partial<BucketLocation> = {}): Store {
      const { endpoint, region } = started.double
      const location = { bucket: BUCKET, prefix: 'set', endpoint, region, pathStyle: true, allowHttp: false }
      return bucketStore(s3Driver({ kind: 's3', ...location, ...changes }))
    },
    /** Another client of the store, or of one at another address, until the test ends. */
    client(endpoint = started.double.endpoint): S3Client {
      const { region } = started.double
      const client = new S3Client({ endpoint, region, credentials: CREDENTIALS, forcePathStyle: true })
      onTestFinished(() => client.destroy())
      return client
    },
  }
}
