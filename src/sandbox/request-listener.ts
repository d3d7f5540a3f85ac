import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { fraction } from './data/words.ts'
import { type Fault, faultPicker, type SandboxResponse, send, sendBroken } from './http/faults.ts'
import {
  findRoute,
  jsonBody,
  type LoggedRequest,
  quotaHeaders,
  type Reply,
  type RequestLog,
  type Route,
  routes,
  type Service,
} from './http/routes.ts'
import type { Settings } from './options.ts'
import { parseJson, ServiceError, serviceError, validationError } from './search/service-error.ts'

const compress = promisify(gzip)
const MAX_BODY_BYTES = 1_000_000
const MAX_DROPPED_BYTES = 64_000_000

/**
 * Handles a request: measures its time of arrival, reads and logs it, applies a fault if there is one, then the rate
 * limit of its tier, and responds. Faults come before the rate limit, so that the request numbers in a list of faults
 * do not depend on timing. A fault counts against the rate limit, too.
 * @param closed aborts the waits of responses still being sent
 */
export function requestListener(
  settings: Settings,
  service: Service,
  log: RequestLog,
  closed: AbortSignal,
): (request: IncomingMessage, response: ServerResponse) => void {
  const table = routes(settings.prefix)
  const pickFault = faultPicker(settings.faults, settings.seed)
  const limits = {
    search: rateLimit(settings.requestsPerSecond, settings.rateToleranceMs),
    basic: rateLimit(settings.basicRequestsPerSecond, settings.rateToleranceMs),
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const at = settings.now()
    const path = request.url ?? '/'
    const method = request.method ?? 'GET'
    const url = new URL(path, 'http://sandbox')
    const found = attempt(() => findRoute(table, method, url.pathname))
    const route = found instanceof ServiceError ? null : found[0]
    const inPace = limits[route?.tier ?? 'basic'].take(at)
    const raw = await readBody(request)
    if (raw instanceof ServiceError) response.once('finish', () => dropRest(request))
    const body = raw instanceof ServiceError ? raw : attempt(() => parseBody(raw, request, route))
    const parsed = body instanceof ServiceError ? undefined : body
    const logged = log.add({ kind: route?.kind ?? 'other', method, path, body: parsed, at })
    logged.tooFast = !inPace

    const fault = pickFault(logged)
    logged.fault = fault?.kind ?? null
    const reply = attempt(() => {
      if (fault) strike(fault, service)
      else if (!inPace) throw tooFast(settings.rateLimitRetryAfter)
      if (found instanceof ServiceError) throw found
      if (body instanceof ServiceError) throw orUnauthorized(body, found[0], service, request)
      return found[0].handle(
        service,
        { authorization: request.headers.authorization, url, body, logged },
        found[1],
      )
    })
    const ms = waitMs(settings, logged)
    const isLate = settings.gatewayTimeoutMs > 0 && ms > settings.gatewayTimeoutMs
    const plain = isLate ? GATEWAY_TIMEOUT : toResponse(reply, route, service)
    if (isLate) logged.items = 0
    const encoded = await encode(fault ? spoil(fault, plain) : plain, request, settings.gzip)
    const wait = isLate ? settings.gatewayTimeoutMs : ms
    if (wait > 0) await sleep(wait, undefined, { signal: closed }).catch(() => {})
    if (closed.aborted || response.destroyed) return
    logged.status = fault?.kind === 'reset' || fault?.kind === 'hang' ? 0 : encoded.status
    const dated = withDate(encoded, settings.now())
    if (fault) await sendBroken(response, dated, fault, closed)
    else send(response, dated)
  }
  return (request, response) => {
    handle(request, response).catch(() => response.socket?.destroy())
  }
}

/** Its own clock may be another than the machine's, which Node.js would name. */
function withDate({ headers, ...rest }: SandboxResponse, nowMs: number): SandboxResponse {
  return { ...rest, headers: { date: new Date(nowMs).toUTCString(), ...headers } }
}

function attempt<T>(action: () => T): T | ServiceError {
  try {
    return action()
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
}

/** A body beyond the limit is not read to its end: it may have none. */
function readBody(request: IncomingMessage): Promise<string | ServiceError> {
  const parts: Buffer[] = []
  let bytes = 0
  return new Promise((resolve, reject) => {
    request.on('error', reject)
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')))
    request.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes <= MAX_BODY_BYTES) {
        parts.push(part)
        return
      }
      if (bytes - part.length > MAX_BODY_BYTES) return
      request.pause()
      resolve(serviceError(413, 'PAYLOAD_TOO_LARGE', 'the body is too large', { connection: 'close' }))
    })
  })
}

/**
 * Ends the connection of a request that was answered before its end. What is still being sent is read and dropped until
 * the sender closes: bytes that nobody reads cause a reset, which may overtake the response.
 */
function dropRest(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (part: Buffer) => {
    bytes += part.length
    if (bytes > MAX_DROPPED_BYTES) request.socket.destroy()
  })
  request.resume()
  request.socket.end()
}

function parseBody(raw: string, request: IncomingMessage, route: Route | null): unknown {
  if (raw === '') return undefined
  if (route?.method === 'POST' && !/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    const loc = ['header', 'content-type']
    throw validationError([{ loc, msg: 'Content-Type should be application/json', type: 'content_type' }])
  }
  return parseJson(raw)
}

/** Who is not let in learns nothing about the body. */
function orUnauthorized(
  error: ServiceError,
  route: Route,
  service: Service,
  request: IncomingMessage,
): ServiceError {
  if (route.kind === 'tokens') return error
  const refused = attempt(() => service.tokens.requireBearer(request.headers.authorization))
  return refused instanceof ServiceError ? refused : error
}

/** Faults that keep the request from being carried out. @throws ServiceError the response instead */
function strike(fault: Fault, service: Service): void {
  if (fault.kind === 'status') {
    const retryAfter = typeof fault.retryAfter === 'function' ? fault.retryAfter() : fault.retryAfter
    const headers = { ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }), ...fault.headers }
    if (fault.status === 429 && fault.code === undefined) throw tooFast(null, headers)
    throw serviceError(
      fault.status,
      fault.code ?? 'SANDBOX_FAULT',
      'a fault that the sandbox was asked for',
      headers,
    )
  }
  if (fault.kind === 'revoke-tokens') {
    service.tokens.revokeAll()
    throw serviceError(401, 'UNAUTHORIZED', 'the access token is missing, unknown or expired')
  }
  if (fault.kind === 'reset' || fault.kind === 'hang' || fault.kind === 'html') {
    throw serviceError(502, 'SANDBOX_FAULT', 'a fault that the sandbox was asked for')
  }
}

/** Source: the public documentation, word for word. */
function tooFast(retryAfter: string | null, headers: Readonly<Record<string, string>> = {}): ServiceError {
  return serviceError(429, 'RATELIMIT_REACHED', 'ratelimit reached', {
    ...(retryAfter === null ? {} : { 'retry-after': retryAfter }),
    ...headers,
  })
}

function toResponse(reply: Reply | ServiceError, route: Route | null, service: Service): SandboxResponse {
  const type = { 'content-type': 'application/json' }
  if (!(reply instanceof ServiceError)) {
    return { status: 200, headers: { ...type, ...reply.headers }, body: reply.body }
  }
  const quota =
    route?.tier === 'search' && reply.status !== 401 ? quotaHeaders(service.search.remaining(), false) : {}
  return {
    status: reply.status,
    headers: { ...type, ...quota, ...reply.headers },
    body: jsonBody(reply.body),
  }
}

/** Faults that replace what is said, not how it is sent. */
function spoil(fault: Fault, plain: SandboxResponse): SandboxResponse {
  switch (fault.kind) {
    case 'html':
      return {
        status: fault.status ?? 502,
        headers: { 'content-type': 'text/html' },
        body: Buffer.from(
          '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body></body>\r\n</html>\r\n',
        ),
      }
    case 'invalid-json':
      return { ...plain, body: plain.body.subarray(0, Math.floor(plain.body.length / 2)) }
    case 'wrong-shape':
      return {
        ...plain,
        body: jsonBody(fault.body === undefined ? { results: [], cursor: null } : fault.body),
      }
    case 'rewrite':
      return { ...plain, body: asBuffer(fault.rewrite(plain.body.toString('utf8'))) }
    default:
      return plain
  }
}

function asBuffer(body: string | Uint8Array): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body)
}

async function encode(
  plain: SandboxResponse,
  request: IncomingMessage,
  mayCompress: boolean,
): Promise<SandboxResponse> {
  if (!mayCompress || !/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) return plain
  const body = await compress(plain.body, { level: 1 })
  return { ...plain, headers: { ...plain.headers, 'content-encoding': 'gzip' }, body }
}

/** As a gateway was seen to respond for the second search. */
const GATEWAY_TIMEOUT: SandboxResponse = {
  status: 504,
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from('upstream request timeout'),
}

function waitMs({ latencyMs, msPerRow, seed }: Settings, logged: LoggedRequest): number {
  const [low, high] = typeof latencyMs === 'number' ? [latencyMs, latencyMs] : latencyMs
  return low + (high - low) * fraction(seed, logged.number, 701) + msPerRow * logged.items
}

type RateLimit = {
  /** Takes a request's permission; false when it comes too early, which costs nothing. */
  take(nowMs: number): boolean
}

/**
 * A token bucket that holds one token. Requests may come a touch early (timers and sockets jitter), but
 * the touch is lent, not given: the long-run rate never passes the limit.
 * @param perSecond 0 = unlimited
 */
export function rateLimit(perSecond: number, toleranceMs: number): RateLimit {
  let readyAtMs = Number.NEGATIVE_INFINITY
  return {
    take(nowMs) {
      if (perSecond === 0) return true
      if (nowMs < readyAtMs - toleranceMs) return false
      readyAtMs = Math.max(nowMs, readyAtMs) + 1000 / perSecond
      return true
    },
  }
}
