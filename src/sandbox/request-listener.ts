import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { fraction } from './data/words.ts'
import {
  findRoute,
  type LoggedRequest,
  quotaHeaders,
  type Reply,
  type RequestLog,
  type Route,
  type Service,
} from './http/routes.ts'
import type { Settings } from './options.ts'
import { parseJson, ServiceError, serviceError, validationError } from './search/service-error.ts'

const compress = promisify(gzip)
const MAX_BODY_LENGTH = 1_000_000

/** @param closed aborts the waits of responses still being sent @param intercept called with each request */
export function requestListener(
  settings: Settings,
  service: Service,
  log: RequestLog,
  closed: AbortSignal,
  intercept: (request: LoggedRequest) => Interception | null,
): (request: IncomingMessage, response: ServerResponse) => void {
  const limits = {
    search: rateLimit(settings.requestsPerSecond),
    basic: rateLimit(settings.basicRequestsPerSecond),
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const at = settings.now()
    const path = request.url ?? '/'
    const method = request.method ?? 'GET'
    const { authorization } = request.headers
    const url = new URL(path, 'http://sandbox')
    const found = attempt(() => findRoute(method, url.pathname))
    const route = found instanceof ServiceError ? null : found[0]
    const inPace = limits[route?.tier ?? 'basic'](at)
    const raw = await text(request)
    const body = attempt(() => parseBody(raw, request, route))
    const parsed = body instanceof ServiceError ? undefined : body
    const logged = log.add({ kind: route?.kind ?? 'other', method, path, body: parsed, at })
    logged.tooFast = !inPace

    const intercepted = intercept(logged)
    logged.fault = intercepted?.name ?? null
    const reply = attempt(() => {
      if (intercepted?.instead) throw intercepted.instead
      // Source: the public documentation, word for word.
      if (!intercepted && !inPace) throw serviceError(429, 'RATELIMIT_REACHED', 'ratelimit reached')
      if (isUnlucky(settings, logged)) throw serviceError(503, 'SANDBOX_ERROR', 'an error that was asked for')
      if (found instanceof ServiceError) throw found
      const [{ isOpen, handle }, match] = found
      // Who is not let in learns nothing about the body.
      if (isOpen !== true) service.tokens.requireBearer(authorization)
      if (body instanceof ServiceError) throw body
      return handle(service, { authorization, url, body, logged }, match)
    })
    const ms = waitMs(settings, logged)
    const isLate = settings.gatewayTimeoutMs > 0 && ms > settings.gatewayTimeoutMs
    const plain = isLate ? GATEWAY_TIMEOUT : toResponse(reply, route, service)
    if (isLate) logged.items = 0
    const encoded = await encode(intercepted?.change(plain) ?? plain, request, settings.gzip)
    const wait = isLate ? settings.gatewayTimeoutMs : ms
    if (wait > 0) await sleep(wait, undefined, { signal: closed }).catch(() => {})
    if (closed.aborted || response.destroyed) return
    logged.status = encoded.status
    // Its own clock may be another than the machine's, which Node.js would name.
    const date = new Date(settings.now()).toUTCString()
    const dated = { ...encoded, headers: { date, ...encoded.headers } }
    if (intercepted) await intercepted.send(response, dated, closed)
    else send(response, dated)
  }
  return (request, response) => {
    handle(request, response).catch(() => response.socket?.destroy())
  }
}

function attempt<T>(action: () => T): T | ServiceError {
  try {
    return action()
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
}

function parseBody(raw: string, request: IncomingMessage, route: Route | null): unknown {
  if (raw === '') return undefined
  if (raw.length > MAX_BODY_LENGTH) throw serviceError(413, 'PAYLOAD_TOO_LARGE', 'the body is too large')
  if (route?.method === 'POST' && !/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    const loc = ['header', 'content-type']
    throw validationError([{ loc, msg: 'Content-Type should be application/json', type: 'content_type' }])
  }
  return parseJson(raw)
}

/** @returns whether this is one of the searches that fail by `errorRate` */
function isUnlucky({ seed, errorRate }: Settings, { kind, ordinal }: LoggedRequest): boolean {
  return kind === 'search' && fraction(seed, ordinal, 601) < errorRate
}

function toResponse(reply: Reply | ServiceError, route: Route | null, service: Service): SandboxResponse {
  const isError = reply instanceof ServiceError
  const quota =
    isError && route?.tier === 'search' && reply.status !== 401
      ? quotaHeaders(service.search.remaining(), false)
      : {}
  return {
    status: isError ? reply.status : 200,
    headers: { 'content-type': 'application/json', ...quota, ...reply.headers },
    body: Buffer.from(JSON.stringify(reply.body)),
  }
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

/** How much too early a request may come: a client that keeps to the rate is at the mercy of timers and sockets. */
const TOLERANCE_MS = 50

/**
 * A bucket of one token. What comes a touch early (timers jitter) is lent, not given. @param perSecond 0: unlimited
 * @returns takes the token; false: it comes too early, which costs nothing
 */
function rateLimit(perSecond: number): (nowMs: number) => boolean {
  let readyAtMs = Number.NEGATIVE_INFINITY
  return (nowMs) => {
    if (perSecond === 0) return true
    if (nowMs < readyAtMs - TOLERANCE_MS) return false
    readyAtMs = Math.max(nowMs, readyAtMs) + 1000 / perSecond
    return true
  }
}

/** A finished response; `body` is what goes over the wire, compressed already where it is. */
export type SandboxResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export function send(response: ServerResponse, content: SandboxResponse): void {
  response.writeHead(content.status, { ...content.headers, 'content-length': content.body.length })
  response.end(content.body)
}

/** What is done to a request and its response by a program that serves the sandbox; by the command and the library, nothing. */
export type Interception = {
  /** For the log of requests. */
  readonly name: string
  /** The response instead of carrying the request out; null: it is carried out. */
  readonly instead: ServiceError | null
  readonly change: (content: SandboxResponse) => SandboxResponse
  /** Resolves when nothing more will be sent. @param closed aborts its waits */
  readonly send: (response: ServerResponse, content: SandboxResponse, closed: AbortSignal) => Promise<void>
}
