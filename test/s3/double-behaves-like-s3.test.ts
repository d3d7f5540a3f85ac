import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
  S3Client,
  type S3ClientConfig,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type S3Double, startS3Double } from './double/server.ts'
import { CREDENTIALS, REGION } from './servers.ts'

// Bytes, metadata, copies and listings are held to what another server does: `test/store/s3-store-conforms`.
const Bucket = 'bucket'
const Key = 'some/key'
let double: S3Double
let client: S3Client

function clientOf(more: S3ClientConfig = {}): S3Client {
  const { endpoint } = double
  const given = { endpoint, region: REGION, credentials: CREDENTIALS, forcePathStyle: true, maxAttempts: 1 }
  return new S3Client({ ...given, ...more })
}

beforeAll(async () => {
  double = await startS3Double({ region: REGION, credentials: [CREDENTIALS] })
  client = clientOf()
})

afterAll(async () => {
  client.destroy()
  await double.close()
})

beforeEach(() => {
  double.clockSkewMs = 0
  double.createBucket(Bucket)
})

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
const stored = () => double.objects(Bucket).get(Key)?.bytes.toString()

it('honours conditions of writes, reads and deletes', async () => {
  const first = await put('1', { IfNoneMatch: '*' })
  expect(await refusal(put('2', { IfNoneMatch: '*' }))).toBe('PreconditionFailed 412')
  const second = await put('2', { IfMatch: first.ETag! })
  expect(await refusal(put('3', { IfMatch: first.ETag! }))).toBe('PreconditionFailed 412')
  expect(await refusal(put('3', { Key: 'none', IfMatch: first.ETag! }))).toBe('NoSuchKey 404')
  const IfMatch = second.ETag!
  const read = (condition: object) =>
    refusal(client.send(new GetObjectCommand({ Bucket, Key, ...condition })))
  expect([await read({ IfMatch }), await read({ IfMatch: '"other"' })]).toEqual([
    'not refused',
    'PreconditionFailed 412',
  ])
  const remove = (condition: object) =>
    refusal(client.send(new DeleteObjectCommand({ Bucket, Key, ...condition })))
  expect(await remove({ IfMatch: '"other"' })).toBe('PreconditionFailed 412')
  expect(stored()).toBe('2')
  expect(await remove({ IfMatch })).toBe('not refused')
  // Others measured it at S3 itself, whose documentation contradicts itself.
  expect(await remove({ IfMatch })).toBe('NoSuchKey 404')
})

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

describe('verifies', () => {
  it.each([
    ['SignatureDoesNotMatch 403', { credentials: { ...CREDENTIALS, secretAccessKey: 'another' } }],
    ['InvalidAccessKeyId 403', { credentials: { ...CREDENTIALS, accessKeyId: 'AKIDOTHER' } }],
    ['AuthorizationHeaderMalformed 400', { region: 'us-west-1' }],
  ])('the sender: %s', async (code, config) => {
    const stranger = clientOf(config)
    expect(await refusal(stranger.send(new PutObjectCommand({ Bucket, Key, Body: 'x' })))).toBe(code)
    stranger.destroy()
    expect(stored()).toBeUndefined()
  })

  it('the clock of the client, and returns its own', async () => {
    double.clockSkewMs = 16 * 60_000
    const late = clientOf()
    const write = () => refusal(late.send(new PutObjectCommand({ Bucket, Key, Body: 'x' })))
    expect([await write(), await write()]).toEqual(['RequestTimeTooSkewed 403', 'not refused'])
    late.destroy()
  })

  it('that it knows the operation', async () => {
    expect(await refusal(put('x', { ACL: 'public-read' }))).toBe('NotImplemented 501')
    expect(await refusal(put('x', { IfNoneMatch: '"etag"' }))).toBe('NotImplemented 501')
  })
})
