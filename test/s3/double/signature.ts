import { createHash, createHmac } from 'node:crypto'
import { S3Error } from './errors.ts'
import type { S3Request } from './request.ts'

type Known = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  readonly nowMs: number
}

const ALGORITHM = 'AWS4-HMAC-SHA256'
const MAX_SKEW_MS = 15 * 60_000

/**
 * Verifies the signature in the headers of a request, from the received bytes alone.
 * Source: Amazon S3 API reference, "Authenticating requests: using the Authorization header (Signature version 4)".
 * @throws S3Error with the code of S3
 */
export function verifySignature(
  request: S3Request,
  body: Uint8Array,
  { accessKeyId, secretAccessKey, region, nowMs }: Known,
): void {
  const { headers } = request
  const authorization = headers.get('authorization')
  if (authorization === undefined) throw new S3Error('AccessDenied')
  const parts =
    /^AWS4-HMAC-SHA256 Credential=([^,/]+)\/((\d{8})\/([^,/]+)\/s3\/aws4_request), ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    )
  const [, id, scope = '', date = '', scopeRegion, names = '', signature] = parts ?? []
  if (parts === null || scopeRegion !== region) throw new S3Error('AuthorizationHeaderMalformed')
  if (id !== accessKeyId) throw new S3Error('InvalidAccessKeyId')
  const time = headers.get('x-amz-date') ?? ''
  const atMs = Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
  if (!(Math.abs(atMs - nowMs) <= MAX_SKEW_MS)) throw new S3Error('RequestTimeTooSkewed')
  const signed = names.split(';')
  // The host and all headers for S3 have to be signed.
  for (const name of headers.keys()) {
    if ((name === 'host' || name.startsWith('x-amz-')) && !signed.includes(name))
      throw new S3Error('AccessDenied')
  }
  const payload = headers.get('x-amz-content-sha256') ?? ''
  if (payload.startsWith('STREAMING-')) throw new S3Error('NotImplemented')
  if (payload !== sha256(body)) throw new S3Error('XAmzContentSHA256Mismatch')
  const toSign = [ALGORITHM, time, scope, sha256(canonicalRequest(request, signed, payload))].join('\n')
  const expected = [date, region, 's3', 'aws4_request', toSign].reduce<string | Buffer>(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    `AWS4${secretAccessKey}`,
  )
  if (expected.toString('hex') !== signature) throw new S3Error('SignatureDoesNotMatch')
}

function canonicalRequest(
  { method, path, query, headers }: S3Request,
  signed: readonly string[],
  payload: string,
): string {
  const parameters = query
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .sort((a, b) => order(a[0], b[0]) || order(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
  const lines = signed.map((name) => `${name}:${(headers.get(name) ?? '').trim().replace(/ +/g, ' ')}\n`)
  const uri = path.split('/').map(encoded).join('/')
  return [method, uri, parameters.join('&'), lines.join(''), signed.join(';'), payload].join('\n')
}

/** Everything but letters, digits, `-`, `.`, `_` and `~`, as bytes of UTF-8. */
export function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')
