import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
  type S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { expect, it } from 'vitest'
import { BUCKET as Bucket } from '../support/bucket.ts'
import { eachInABucket } from './each-in-a-bucket.ts'

// The rest is held to what another server does, and to what the client needs: `test/store/s3-store-conforms`.
const Key = 'some/key'
const here = eachInABucket()

/** The code and the status of the error that a request gets. */
const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'not refused',
    ({ name, $metadata }: S3ServiceException) => `${name} ${$metadata.httpStatusCode}`,
  )

const put = (Body = 'x', more: Partial<PutObjectCommandInput> = {}) =>
  here.client().send(new PutObjectCommand({ Bucket, Key, Body, ...more }))

it('rejects uploads with small parts, wrong parts or a wrong order, and completes one once', async () => {
  const client = here.client()
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  const to = { Bucket, Key, UploadId: UploadId! }
  const upload = async (PartNumber: number, Body: string | Uint8Array) => {
    const { ETag } = await client.send(new UploadPartCommand({ ...to, PartNumber, Body }))
    return { PartNumber, ETag: ETag! }
  }
  const complete = (Parts: { PartNumber: number; ETag: string }[], more: object = {}) =>
    refusal(client.send(new CompleteMultipartUploadCommand({ ...to, MultipartUpload: { Parts }, ...more })))
  const big = Buffer.alloc(5 << 20, 'b')
  const [one, two, three] = [await upload(1, 'small'), await upload(2, big), await upload(3, big)]
  expect(await complete([one, two])).toBe('EntityTooSmall 400')
  expect(await complete([three, two])).toBe('InvalidPartOrder 400')
  expect(await complete([{ ...one, ETag: two.ETag }])).toBe('InvalidPart 400')
  expect(await complete([{ ...one, PartNumber: 4 }])).toBe('InvalidPart 400')
  expect(await complete([])).toBe('MalformedXML 400')
  await put('there')
  expect(await complete([one], { IfMatch: '"other"' })).toBe('PreconditionFailed 412')
  expect(await complete([one])).toBe('not refused')
  expect(await complete([one])).toBe('NoSuchUpload 404')
})

it('refuses what it does not know', async () => {
  expect(await refusal(put('x', { ACL: 'public-read' }))).toBe('NotImplemented 501')
  expect(await refusal(put('x', { IfNoneMatch: '"etag"' }))).toBe('NotImplemented 501')
})
