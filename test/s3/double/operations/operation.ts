import { S3Error } from '../errors.ts'
import type { Bucket, Condition } from '../objects.ts'
import type { S3Request } from '../request.ts'
import { document, type Xml } from '../xml.ts'

/** A signed request, and where it is carried out. */
export type Context = {
  readonly request: S3Request
  readonly body: Buffer
  readonly buckets: Map<string, Bucket>
  /** Names in one response of a listing. */
  readonly page: number
  readonly nowMs: number
}

export type S3Response = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Of an error. */
  readonly code?: string
}

export function s3Response(
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body: Buffer = Buffer.alloc(0),
): S3Response {
  return { status, headers, body }
}

export function xmlResponse(name: string, content: readonly Xml[]): S3Response {
  return s3Response(200, { 'content-type': 'application/xml' }, Buffer.from(document(name, content)))
}

export function bucketOf({ request, buckets }: Context): Bucket {
  return bucketNamed(buckets, request.bucket ?? '')
}

export function bucketNamed(buckets: ReadonlyMap<string, Bucket>, name: string): Bucket {
  const found = buckets.get(name)
  if (found === undefined) throw new S3Error('NoSuchBucket')
  return found
}

/** @throws S3Error when the key is longer than S3 permits */
export function keyOf({ request }: Context): string {
  const key = request.key ?? ''
  if (Buffer.byteLength(key) > 1024) throw new S3Error('KeyTooLongError')
  return key
}

/** @throws S3Error `NotImplemented` where S3 only permits an asterisk */
export function conditionOf({ request: { headers } }: Context): Condition {
  const ifNoneMatch = headers.get('if-none-match') ?? null
  if (ifNoneMatch !== null && ifNoneMatch !== '*') throw new S3Error('NotImplemented')
  return { ifMatch: headers.get('if-match') ?? null, ifNoneMatch }
}

/** The request headers that are returned with the object. */
export function storedHeaders({ request: { headers } }: Context): Record<string, string> {
  const stored = [...headers].filter(([name]) => /^(?:content-type|x-amz-meta-.+)$/.test(name))
  return { 'content-type': 'binary/octet-stream', ...Object.fromEntries(stored) }
}

/** As in listings and copies; S3 has whole seconds. */
export function isoTime(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString()
}
