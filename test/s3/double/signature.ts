import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { S3Error } from './errors.ts'
import type { S3Request } from './request.ts'

export type Credentials = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Temporary ones have a token, which every request has to contain. */
  readonly sessionToken?: string
}

export type Verification = {
  readonly credentials: readonly Credentials[]
  readonly region: string
  readonly nowMs: number
  /** Whether the hash of the body may be omitted. */
  readonly allowUnsignedPayload: boolean
}

const ALGORITHM = 'AWS4-HMAC-SHA256'
const MAX_SKEW_MS = 15 * 60_000

/**
 * Verifies the signature in the headers of a request, from the received bytes alone.
 * Source: Amazon S3 API reference, "Authenticating requests: using the Authorization header (Signature version 4)".
 * @throws S3Error with the code of S3
 */
export function verifySignature(request: S3Request, body: Uint8Array, options: Verification): void {
  const { headers } = request
  const { scope, signedHeaders, signature } = parseAuthorization(request)
  const known = options.credentials.find(({ accessKeyId }) => accessKeyId === scope.accessKeyId)
  if (known === undefined)
    throw new S3Error('InvalidAccessKeyId', undefined, { AWSAccessKeyId: scope.accessKeyId })
  // Delta's kernel sends an empty one where there is none.
  if ((headers.get('x-amz-security-token') ?? '') !== (known.sessionToken ?? ''))
    throw new S3Error('InvalidToken')
  if (scope.region !== options.region || scope.service !== 's3' || scope.end !== 'aws4_request')
    throw new S3Error('AuthorizationHeaderMalformed', 'The credential scope is wrong.', {
      Region: options.region,
    })
  const time = headers.get('x-amz-date') ?? ''
  requireTime(time, scope.date, options.nowMs)
  requireSigned(headers, signedHeaders)
  const payload = requirePayload(headers.get('x-amz-content-sha256'), body, options.allowUnsignedPayload)

  const canonical = canonicalRequest(request, signedHeaders, payload)
  const toSign = [
    ALGORITHM,
    time,
    `${scope.date}/${scope.region}/${scope.service}/${scope.end}`,
    sha256(canonical),
  ].join('\n')
  const expected = [scope.date, scope.region, scope.service, scope.end, toSign].reduce<string | Buffer>(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    `AWS4${known.secretAccessKey}`,
  ) as Buffer
  if (!timingSafeEqual(expected, Buffer.from(signature, 'hex')))
    throw new S3Error('SignatureDoesNotMatch', 'The signature that was calculated is another one.', {
      StringToSign: toSign,
      CanonicalRequest: canonical,
    })
}

function parseAuthorization({ headers, query }: S3Request) {
  const authorization = headers.get('authorization')
  if (authorization === undefined) {
    if (query.some(([name]) => name === 'X-Amz-Signature')) throw new S3Error('NotImplemented')
    throw new S3Error('AccessDenied')
  }
  if (!authorization.startsWith(`${ALGORITHM} `))
    throw new S3Error('InvalidRequest', `Please use ${ALGORITHM}.`)
  const parts =
    /^\S+ Credential=([^,/]+)\/(\d{8})\/([^,/]+)\/([^,/]+)\/([^,/]+), ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    )
  if (parts === null)
    throw new S3Error('AuthorizationHeaderMalformed', 'The authorization header makes no sense.')
  const [, accessKeyId = '', date = '', region = '', service = '', end = '', names = '', signature = ''] =
    parts
  return { scope: { accessKeyId, date, region, service, end }, signedHeaders: names.split(';'), signature }
}

function requireTime(time: string, date: string, nowMs: number): void {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time)
  if (parts === null) throw new S3Error('AccessDenied', 'A valid x-amz-date header is required.')
  const [year = 0, month = 0, ...rest] = parts.slice(1).map(Number)
  const atMs = Date.UTC(year, month - 1, ...rest)
  if (Math.abs(atMs - nowMs) > MAX_SKEW_MS)
    throw new S3Error('RequestTimeTooSkewed', 'The difference between the clocks is too large.', {
      RequestTime: time,
      ServerTime: new Date(nowMs).toISOString(),
      MaxAllowedSkewMilliseconds: String(MAX_SKEW_MS),
    })
  if (!time.startsWith(date))
    throw new S3Error('AuthorizationHeaderMalformed', 'The date of the credential is another day.')
}

/** The host and all headers for S3 have to be signed. */
function requireSigned(headers: ReadonlyMap<string, string>, signed: readonly string[]): void {
  const open = [...headers.keys()].filter(
    (name) => (name === 'host' || name.startsWith('x-amz-')) && !signed.includes(name),
  )
  if (open.length > 0)
    throw new S3Error('AccessDenied', 'There were headers in the request which were not signed', {
      HeadersNotSigned: open.join(', '),
    })
}

/** @returns the hash in the header */
function requirePayload(stated: string | undefined, body: Uint8Array, allowUnsigned: boolean): string {
  if (stated === undefined)
    throw new S3Error('InvalidRequest', 'Missing required header for this request: x-amz-content-sha256')
  if (stated.startsWith('STREAMING-')) throw new S3Error('NotImplemented')
  if (stated === 'UNSIGNED-PAYLOAD') {
    if (!allowUnsigned) throw new S3Error('AccessDenied', 'The body has to be signed.')
    return stated
  }
  if (!/^[0-9a-f]{64}$/.test(stated))
    throw new S3Error('InvalidArgument', 'x-amz-content-sha256 must be a SHA-256 in hexadecimal.')
  const computed = sha256(body)
  if (stated !== computed)
    throw new S3Error('XAmzContentSHA256Mismatch', 'x-amz-content-sha256 does not match the body.', {
      ClientComputedContentSHA256: stated,
      S3ComputedContentSHA256: computed,
    })
  return stated
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

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}
