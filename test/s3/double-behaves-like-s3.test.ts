import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
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

    it('stores bytes, metadata and type of an object', async () => {
      const { ETag } = await put('a/key', 'hello', {
        Metadata: { owner: 'someone', 'rows-in-it': '12' },
        ContentType: 'text/plain',
      })
      expect(ETag).toBe('"5d41402abc4b2a76b9719d911017c592"')
      const got = await get('a/key')
      expect(await got.Body!.transformToString()).toBe('hello')
      for (const object of [got, await head('a/key')]) {
        expect(object).toMatchObject({ ETag, ContentLength: 5, ContentType: 'text/plain' })
        expect(object.Metadata).toEqual({ owner: 'someone', 'rows-in-it': '12' })
        expect(object.LastModified).toBeInstanceOf(Date)
      }
      await put('a/key', new Uint8Array(0))
      expect(await head('a/key')).toMatchObject({ ContentLength: 0, Metadata: {} })
    })

    it.each(['a b', 'plus+and=equal', "!'()*~-_.", '%41%2F', 'ünï/中/😀', 'a//b', '&<>"?#:@$,;[]|^`{}'])(
      'accepts the key %s',
      async (key) => {
        await put(key, 'x')
        expect(await text(key)).toBe('x')
        const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }))
        expect(Contents?.map(({ Key }) => Key)).toEqual([key])
      },
    )

    it('returns ranges of bytes', async () => {
      await put('digits', '0123456789')
      expect(await text('digits', 'bytes=2-4')).toBe('234')
      expect(await text('digits', 'bytes=7-')).toBe('789')
      expect(await text('digits', 'bytes=-2')).toBe('89')
      expect(await text('digits', 'bytes=8-100')).toBe('89')
      expect((await get('digits', 'bytes=2-4')).ContentRange).toBe('bytes 2-4/10')
      expect(await refusal(get('digits', 'bytes=10-12'))).toBe('InvalidRange 416')
    })

    it('reports missing objects', async () => {
      expect(await refusal(get('none'))).toBe('NoSuchKey 404')
      expect(await refusal(head('none'))).toBe('NotFound 404')
      await client.send(new DeleteObjectCommand({ Bucket, Key: 'none' }))
      Bucket = 'no-such-bucket'
      expect(await refusal(get('none'))).toBe('NoSuchBucket 404')
      expect(await refusal(put('none', 'x'))).toBe('NoSuchBucket 404')
      expect(await refusal(client.send(new ListObjectsV2Command({ Bucket })))).toBe('NoSuchBucket 404')
    })

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

      it('shows the object once it is complete, and not before', async () => {
        const to = await begin('key', { Metadata: { a: '1' } })
        const second = await upload(to, 2, 'end')
        const first = await upload(to, 1, big)
        expect(await refusal(head('key'))).toBe('NotFound 404')
        expect((await client.send(new ListObjectsV2Command({ Bucket }))).Contents).toBeUndefined()
        const { ETag } = await complete(to, [first, second])
        expect(ETag).toMatch(/^"[0-9a-f]{32}-2"$/)
        expect(await head('key')).toMatchObject({ ETag, ContentLength: big.length + 3, Metadata: { a: '1' } })
        expect(await text('key', `bytes=${big.length - 1}-`)).toBe('bend')
      })

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

      it('lists uploads, and removes those that are aborted', async () => {
        const [a, b] = [await begin('a'), await begin('b')]
        await upload(a, 1, 'one')
        const pending = async () =>
          (await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads?.map(
            ({ Key, UploadId }) => [Key, UploadId],
          )
        expect(await pending()).toEqual([
          ['a', a.UploadId],
          ['b', b.UploadId],
        ])
        await client.send(new AbortMultipartUploadCommand(a))
        expect(await pending()).toEqual([['b', b.UploadId]])
        expect(await refusal(client.send(new AbortMultipartUploadCommand(a)))).toBe('NoSuchUpload 404')
        // moto_server responds to these with a page of HTML.
        if (!isDouble) return
        expect(await refusal(upload(a, 2, 'late'))).toBe('NoSuchUpload 404')
        expect(await refusal(complete(a, [{ PartNumber: 1, ETag: '"x"' }]))).toBe('NoSuchUpload 404')
      })

      it('honours conditions of completions', async () => {
        const { ETag } = await put('key', 'there')
        const to = await begin()
        const parts = [await upload(to, 1, 'new')]
        expect(await refusal(complete(to, parts, { IfNoneMatch: '*' }))).toBe('PreconditionFailed 412')
        expect(await text('key')).toBe('there')
        await complete(to, parts, { IfMatch: ETag! })
        expect(await text('key')).toBe('new')
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

type Signed = {
  method: string
  path: string
  headers: Record<string, string>
  body: string
}

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

  /** A request as the client would have sent it. */
  async function signed(more: Partial<PutObjectCommandInput> = {}): Promise<Signed> {
    const capturing = clientOf(double.endpoint)
    let captured: Signed | null = null
    capturing.middlewareStack.addRelativeTo(
      () => async (args: { request?: unknown }) => {
        const { method, path, query, headers, body } = args.request as Signed & {
          query: Record<string, string>
        }
        captured = { method, path: `${path}?${new URLSearchParams(query)}`, headers, body }
        throw new Error('captured')
      },
      { name: 'capture', relation: 'after', toMiddleware: 'httpSigningMiddleware' },
    )
    await expect(
      capturing.send(new PutObjectCommand({ Bucket, Key, Body: 'content', ...more })),
    ).rejects.toThrow('captured')
    capturing.destroy()
    return captured!
  }

  async function sent({ method, path, headers, body }: Signed): Promise<string> {
    const { port } = new URL(double.endpoint)
    return new Promise((resolve, reject) => {
      const request = httpRequest({ host: '127.0.0.1', port, method, path, headers }, async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve(`${/<Code>(\w+)/.exec(text)?.[1] ?? ''} ${response.statusCode}`)
      })
      request.on('error', reject)
      request.end(body)
    })
  }

  describe('verifies', () => {
    it('the signature over the whole request', async () => {
      const good = await signed()
      expect(await sent(good)).toBe(' 200')
      const alter = (change: (request: Signed) => Partial<Signed>) => sent({ ...good, ...change(good) })
      const withHeader = (name: string, value: string) =>
        alter(({ headers }) => ({ headers: { ...headers, [name]: value } }))
      expect(await alter(() => ({ path: '/bucket/other?x-id=PutObject' }))).toBe('SignatureDoesNotMatch 403')
      expect(await alter(({ path }) => ({ path: `${path}&uploads=` }))).toBe('SignatureDoesNotMatch 403')
      expect(await alter(() => ({ body: 'CONTENT' }))).toBe('XAmzContentSHA256Mismatch 400')
      expect(await withHeader('content-type', 'text/html')).toBe('SignatureDoesNotMatch 403')
      expect(await withHeader('x-amz-meta-added', 'x')).toBe('AccessDenied 403')
      expect(await withHeader('x-amz-content-sha256', 'UNSIGNED-PAYLOAD')).toBe(
        'XAmzContentSHA256Mismatch 400',
      )
      expect(await withHeader('x-amz-content-sha256', 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD')).toBe(
        'NotImplemented 501',
      )
      expect(await withHeader('authorization', 'AWS4-HMAC-SHA256 nonsense')).toBe(
        'AuthorizationHeaderMalformed 400',
      )
      const { authorization, ...anonymous } = good.headers
      expect(authorization).toBeDefined()
      expect(await alter(() => ({ headers: anonymous }))).toBe('AccessDenied 403')
    })

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

  it('that the body is complete, and else stores nothing', async () => {
    const { method, path, headers, body } = await signed()
    const { port, host } = new URL(double.endpoint)
    const head = Object.entries({ ...headers, host }).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connect(Number(port), '127.0.0.1')
    socket.end(`${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n${body.slice(0, -1)}`)
    // It gets a response about an invalid request, or none.
    for await (const _ of socket);
    expect(double.log).toMatchObject([{ operation: 'PutObject', status: null, received: body.length - 1 }])
    expect(stored()).toBeUndefined()
  })
})
