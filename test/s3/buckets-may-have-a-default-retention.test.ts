import { expect, it } from 'vitest'
import { WORKED, workThrough } from '../store/conformance/buckets-of-others.ts'
import { eachInABucket } from './each-in-a-bucket.ts'

const here = eachInABucket({ retention: true })

// Source: Amazon S3 user guide, "Object Lock considerations": uploads need `Content-MD5` or another checksum.
it('a bucket with a default retention takes every write, because each has its MD5', async () => {
  expect(await workThrough(here.open())).toEqual(WORKED)
  const writes = here.double.requests({ operation: ['PutObject', 'UploadPart'] })
  expect(writes.filter(({ headers }) => !headers.has('content-md5'))).toEqual([])
})
