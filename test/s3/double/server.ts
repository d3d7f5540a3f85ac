import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CREDENTIALS, REGION } from '../servers.ts'
import { Cues, fits, type Matcher, type Seen } from './cues.ts'
import { S3Error } from './errors.ts'
import { Bucket, type StoredObject, type Upload } from './objects.ts'
import { OPERATIONS, operationOf, requireKnownHeaders } from './operations/index.ts'
import { bucketNamed, type S3Response, s3Response } from './operations/operation.ts'
import { parseRequest, type S3Request } from './request.ts'
import { verifySignature } from './signature.ts'
import { document, elements } from './xml.ts'

export type S3DoubleOptions = {
  readonly buckets?: readonly string[]
  readonly region?: string
  /** Names in one response of a listing. */
  readonly page?: number
  /** Conditions of writes that it ignores, as some stores do: `if-none-match`, `if-match`. */
  readonly ignoredConditions?: readonly string[]
}

const REQUEST = '0123456789ABCDEF'

/** Starts a server on a free port of the loopback; the caller closes it. */
export async function startS3Double(options: S3DoubleOptions = {}): Promise<S3Double> {
  const double = new S3Double(options)
  await double.listen()
  return double
}

/**
 * S3 as far as a client for objects needs it: signatures are verified, conditions honoured, listings paged, parts
 * joined, all in memory. Unknown requests get `NotImplemented` rather than being ignored.
 * Path-style addresses only.
 */
export class S3Double {
  readonly region: string
  readonly cues = new Cues()
  readonly log: Seen[] = []
  /** By how much the clock of the server is ahead of ours. */
  clockSkewMs = 0
  readonly #page: number
  readonly #ignoredConditions: readonly string[]
  readonly #buckets = new Map<string, Bucket>()
  readonly #server: Server

  constructor({ buckets = [], region = REGION, page = 1000, ignoredConditions = [] }: S3DoubleOptions) {
    this.#ignoredConditions = ignoredConditions
    this.#page = page
    this.region = region
    for (const name of buckets) this.createBucket(name)
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (message, response) => {
      void this.#serve(message, response)
    })
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  createBucket(name: string): void {
    this.#buckets.set(name, new Bucket(name))
  }

  objects(bucket: string): ReadonlyMap<string, StoredObject> {
    return bucketNamed(this.#buckets, bucket).objects
  }

  /** Multipart uploads that are neither completed nor aborted. */
  uploads(bucket: string): readonly Upload[] {
    return [...bucketNamed(this.#buckets, bucket).uploads.values()]
  }

  requests(matcher: Matcher): readonly Seen[] {
    return this.log.filter((seen) => fits(seen, matcher))
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    let seen: Seen | null = null
    try {
      const request = parseRequest(message)
      seen = this.#note(request)
      const body = await readBody(message)
      // The client is gone, and an incomplete request has no effect.
      if (body === null) return
      await this.#perform(request, body, seen, response)
    } catch (error) {
      if (!(error instanceof S3Error)) console.error('the double of S3, or a hook of its, has failed:', error)
      send(response, seen, message.method, errorResponse(error, message.url ?? ''), this.#nowMs())
    }
  }

  #nowMs(): number {
    return Date.now() + this.clockSkewMs
  }

  #note(request: S3Request): Seen {
    const { bucket, key, query, headers } = request
    const operation = operationOf(request) ?? 'Unknown'
    const seen: Seen = { operation, bucket, key, query, headers, status: null, code: null }
    this.log.push(seen)
    return seen
  }

  async #perform(request: S3Request, body: Buffer, seen: Seen, response: ServerResponse): Promise<void> {
    const trouble = this.cues.troubleFor(seen)
    if (trouble !== null && 'code' in trouble) throw new S3Error(trouble.code, trouble.status)
    if (trouble?.connection === 'reset-before') return void response.socket?.resetAndDestroy()
    await this.cues.pauseBefore(seen)
    const done = this.#carryOut(request, body, seen)
    if (trouble?.connection === 'reset-after') response.socket?.resetAndDestroy()
    else if (trouble?.connection === 'cut-response') cutResponse(response, done)
    else send(response, seen, request.method, done, this.#nowMs())
  }

  #carryOut(request: S3Request, body: Buffer, seen: Seen): S3Response {
    verifySignature(request, body, { ...CREDENTIALS, region: this.region, nowMs: this.#nowMs() })
    const { operation } = seen
    if (operation === 'Unknown') throw new S3Error('NotImplemented')
    requireKnownHeaders(request, operation)
    const digest = request.headers.get('content-md5')
    if (digest !== undefined && digest !== createHash('md5').update(body).digest('base64'))
      throw new S3Error('BadDigest')
    return OPERATIONS[operation].run({
      request: request.method === 'PUT' ? without(request, this.#ignoredConditions) : request,
      body,
      buckets: this.#buckets,
      page: this.#page,
      nowMs: this.#nowMs(),
    })
  }
}

function without(request: S3Request, names: readonly string[]): S3Request {
  return { ...request, headers: new Map([...request.headers].filter(([name]) => !names.includes(name))) }
}

/** @returns null when the connection broke before the end */
async function readBody(message: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk)
  } catch {
    return null
  }
  return message.complete ? Buffer.concat(chunks) : null
}

function errorResponse(error: unknown, resource: string): S3Response {
  const { code, message, status } = error instanceof S3Error ? error : new S3Error('InternalError')
  const fields = elements({ Code: code, Message: message, Resource: resource, RequestId: REQUEST })
  const body = Buffer.from(document('Error', fields, false))
  return { ...s3Response(status, { 'content-type': 'application/xml' }, body), code }
}

function send(
  response: ServerResponse,
  seen: Seen | null,
  method: string | undefined,
  { status, headers, body, code }: S3Response,
  nowMs: number,
): void {
  if (response.destroyed) return
  const hasBody = method !== 'HEAD' && status !== 204
  if (seen !== null) {
    seen.status = status
    seen.code = code ?? null
  }
  response.writeHead(status, {
    ...headers,
    ...(status === 204 ? {} : { 'content-length': body.length }),
    date: new Date(nowMs).toUTCString(),
    server: 'AmazonS3',
    'x-amz-request-id': REQUEST,
    'x-amz-id-2': 'double',
  })
  response.end(hasBody ? body : undefined)
}

function cutResponse(response: ServerResponse, { status, headers, body }: S3Response): void {
  response.writeHead(status, { ...headers, 'content-length': body.length + 1 })
  response.write(body.subarray(0, body.length >> 1), () => response.socket?.resetAndDestroy())
}
