import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type PutObjectCommandInput,
  S3Client,
  type S3ClientConfig,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type S3Double, startS3Double } from './double/server.ts'
import { CREDENTIALS, REGION, S3_SERVERS, type S3Server } from './servers.ts'

const MIB = 1 << 20

function clientOf(endpoint: string, more: S3ClientConfig = {}): S3Client {
  return new S3Client({
    endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    forcePathStyle: true,
    maxAttempts: 1,
    ...more,
  })
}

/** The code and the status of the error that a request gets. */
async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => 'not refused',
    (thrown: unknown) => thrown,
  )
  return error instanceof S3ServiceException
    ? `${error.name} ${error.$metadata.httpStatusCode}`
    : String(error)
}

describe.each(S3_SERVERS)('$name', ({ isThere, isDouble, start }) => {
  describe.skipIf(!isThere)('follows the documentation of S3', () => {
    let server: S3Server
    let client: S3Client
    let Bucket: string
    let buckets = 0

    beforeAll(async () => {
      server = await start()
      client = clientOf(server.endpoint)
    })
    afterAll(async () => {
      client?.destroy()
      await server?.close()
    })
    beforeEach(async () => {
      Bucket = `bucket-${buckets++}`
      await client.send(new CreateBucketCommand({ Bucket }))
    })

    const put = (Key: string, Body: string | Uint8Array, more: Partial<PutObjectCommandInput> = {}) =>
      client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))
    const get = (Key: string, Range?: string) =>
      client.send(new GetObjectCommand({ Bucket, Key, ...(Range === undefined ? {} : { Range }) }))
    const head = (Key: string) => client.send(new HeadObjectCommand({ Bucket, Key }))
    const text = async (Key: string, Range?: string) => (await get(Key, Range)).Body!.transformToString()

    it('honours conditions of writes', async () => {
      const first = await put('key', '1', { IfNoneMatch: '*' })
      expect(await refusal(put('key', '2', { IfNoneMatch: '*' }))).toBe('PreconditionFailed 412')
      const second = await put('key', '2', { IfMatch: first.ETag! })
      expect(await refusal(put('key', '3', { IfMatch: first.ETag! }))).toBe('PreconditionFailed 412')
      expect(await text('key')).toBe('2')
      expect(second.ETag).not.toBe(first.ETag)
      expect(await refusal(put('none', 'x', { IfMatch: first.ETag! }))).toBe('NoSuchKey 404')
    })

    it('honours conditions of reads', async () => {
      const { ETag } = await put('key', '1')
      const read = (condition: object) =>
        refusal(client.send(new GetObjectCommand({ Bucket, Key: 'key', ...condition })))
      expect(await read({ IfMatch: ETag! })).toBe('not refused')
      expect(await read({ IfMatch: '"other"' })).toBe('PreconditionFailed 412')
    })

    it('honours conditions of deletes', async () => {
      const { ETag } = await put('key', '1')
      const remove = (IfMatch: string) =>
        refusal(client.send(new DeleteObjectCommand({ Bucket, Key: 'key', IfMatch })))
      expect(await remove('"other"')).toBe('PreconditionFailed 412')
      expect(await text('key')).toBe('1')
      expect(await remove(ETag!)).toBe('not refused')
      expect(await refusal(head('key'))).toBe('NotFound 404')
      // Others measured it at S3 itself, whose documentation contradicts itself.
      expect(await remove(ETag!)).toBe('NoSuchKey 404')
    })

    it('copies objects, with their metadata', async () => {
      const { ETag } = await put('from here', 'bytes', { Metadata: { a: '1' } })
      const copy = (name: string) =>
        client.send(new CopyObjectCommand({ Bucket, Key: 'to', CopySource: `${Bucket}/${name}` }))
      expect((await copy('from%20here')).CopyObjectResult?.ETag).toBe(ETag)
      expect(await text('to')).toBe('bytes')
      expect((await head('to')).Metadata).toEqual({ a: '1' })
      expect(await refusal(copy('none'))).toBe('NoSuchKey 404')
      expect(await refusal(copy('to'))).toBe('InvalidRequest 400')
    })

    it('lists in the order of bytes, page by page', async () => {
      const keys = ['B', 'a', 'a/1', 'a/2', 'a/é', 'a0', 'ab', 'b/1', '\uffee', '😀']
      for (const key of keys) await put(key, 'x')
      const list = async (more: object) => {
        const names: string[] = []
        for (let ContinuationToken: string | undefined; ; ) {
          const page = await client.send(new ListObjectsV2Command({ Bucket, ...more, ContinuationToken }))
          const prefixes = page.CommonPrefixes?.map(({ Prefix }) => `${Prefix}…`) ?? []
          const object = [...(page.Contents?.map(({ Key }) => Key!) ?? []), ...prefixes]
          expect(page.KeyCount).toBe(object.length)
          names.push(...object)
          if (!page.IsTruncated) return names
          ContinuationToken = page.NextContinuationToken
        }
      }
      for (const MaxKeys of [1, 3, 1000]) {
        expect(await list({ MaxKeys })).toEqual(keys)
        expect((await list({ MaxKeys, Delimiter: '/' })).sort()).toEqual(
          ['B', 'a', 'a0', 'ab', '\uffee', '😀', 'a/…', 'b/…'].sort(),
        )
        expect(await list({ MaxKeys, Prefix: 'a/' })).toEqual(['a/1', 'a/2', 'a/é'])
        expect(await list({ MaxKeys, Prefix: 'a/', StartAfter: 'a/1' })).toEqual(['a/2', 'a/é'])
      }
      expect(await list({ Prefix: 'none' })).toEqual([])
    })

    describe('in uploads of several parts', () => {
      const big = Buffer.alloc(5 * MIB, 'b')
      const begin = async (Key = 'key', more: object = {}) => {
        const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key, ...more }))
        return { Bucket, Key, UploadId: UploadId! }
      }
      type Upload = Awaited<ReturnType<typeof begin>>
      const upload = async (to: Upload, PartNumber: number, Body: string | Uint8Array) => {
        const { ETag } = await client.send(new UploadPartCommand({ ...to, PartNumber, Body }))
        return { PartNumber, ETag: ETag! }
      }
      const complete = (to: Upload, Parts: { PartNumber: number; ETag: string }[], more: object = {}) =>
        client.send(new CompleteMultipartUploadCommand({ ...to, MultipartUpload: { Parts }, ...more }))

      it('rejects small parts, wrong parts and a wrong order', async () => {
        const to = await begin()
        const [one, two, three] = [
          await upload(to, 1, 'small'),
          await upload(to, 2, big),
          await upload(to, 3, big),
        ]
        expect(await refusal(complete(to, [one, two]))).toBe('EntityTooSmall 400')
        // moto_server accepts parts in any order.
        if (isDouble) expect(await refusal(complete(to, [three, two]))).toBe('InvalidPartOrder 400')
        expect(await refusal(complete(to, [{ ...one, ETag: two.ETag }]))).toBe('InvalidPart 400')
        expect(await refusal(complete(to, [{ ...one, PartNumber: 4 }]))).toBe('InvalidPart 400')
        expect(await refusal(complete(to, []))).toBe('MalformedXML 400')
        await complete(to, [one])
      })

      // moto_server checks no other condition of these.
      it.runIf(isDouble)('honours conditions that moto_server ignores', async () => {
        await put('key', 'there')
        const to = await begin()
        const parts = [await upload(to, 1, 'new')]
        expect(await refusal(complete(to, parts, { IfMatch: '"other"' }))).toBe('PreconditionFailed 412')
        // By the documentation, a completed or aborted upload is gone; moto_server repeats its response.
        await complete(to, parts)
        expect(await refusal(complete(to, parts))).toBe('NoSuchUpload 404')
      })
    })
  })
})

describe('the double', () => {
  const Bucket = 'bucket'
  const Key = 'some/key'
  let double: S3Double
  let client: S3Client

  beforeAll(async () => {
    double = await startS3Double({ region: REGION, credentials: [CREDENTIALS], buckets: [Bucket] })
    client = clientOf(double.endpoint)
  })
  afterAll(async () => {
    client.destroy()
    await double.close()
  })
  beforeEach(async () => {
    double.cues.clear()
    double.clockSkewMs = 0
    double.createBucket(Bucket)
    double.log.length = 0
  })

  const put = (Body = 'x', more: Partial<PutObjectCommandInput> = {}) =>
    client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))
  const stored = () => double.objects(Bucket).get(Key)?.bytes.toString()

  describe('verifies', () => {
    it.each([
      ['SignatureDoesNotMatch 403', { credentials: { ...CREDENTIALS, secretAccessKey: 'another' } }],
      ['InvalidAccessKeyId 403', { credentials: { ...CREDENTIALS, accessKeyId: 'AKIDOTHER' } }],
      ['AuthorizationHeaderMalformed 400', { region: 'us-west-1' }],
    ])('the sender: %s', async (code, config) => {
      const stranger = clientOf(double.endpoint, config)
      expect(await refusal(stranger.send(new PutObjectCommand({ Bucket, Key, Body: 'x' })))).toBe(code)
      stranger.destroy()
      expect(stored()).toBeUndefined()
    })

    it('the clock of the client, and returns its own', async () => {
      double.clockSkewMs = 16 * 60_000
      const late = clientOf(double.endpoint)
      const write = () => refusal(late.send(new PutObjectCommand({ Bucket, Key, Body: 'x' })))
      expect(await write()).toBe('RequestTimeTooSkewed 403')
      expect(await write()).toBe('not refused')
      late.destroy()
    })

    it('that it knows the operation', async () => {
      expect(await refusal(put('x', { ACL: 'public-read' }))).toBe('NotImplemented 501')
      expect(await refusal(put('x', { IfNoneMatch: '"etag"' }))).toBe('NotImplemented 501')
    })
  })
})
