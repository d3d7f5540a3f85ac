import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { type S3Double, startS3Double } from './double/server.ts'
import { CREDENTIALS, REGION } from './servers.ts'

// The rest is held to what another server does, and to what the client needs: `test/store/s3-store-conforms`.
const Bucket = 'bucket'
const Key = 'some/key'
let double: S3Double
let client: S3Client

beforeAll(async () => {
  double = await startS3Double()
  const { endpoint } = double
  const given = { endpoint, region: REGION, credentials: CREDENTIALS, forcePathStyle: true, maxAttempts: 1 }
  client = new S3Client(given)
})

afterAll(async () => {
  client.destroy()
  await double.close()
})

beforeEach(() => double.createBucket(Bucket))

/** The code and the status of the error that a request gets. */
async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => 'not refused',
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof S3ServiceException)) return String(error)
  return `${error.name} ${error.$metadata.httpStatusCode}`
}

const put = (Body = 'x', more: Partial<PutObjectCommandInput> = {}) =>
  client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))

it('rejects uploads with small parts, wrong parts or a wrong order, and completes one once', async () => {
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
