import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fraction } from '../../src/sandbox/data/words.ts'
import type { LoggedRequest, RequestKind } from '../../src/sandbox/http/routes.ts'
import { type Interception, type SandboxResponse, send } from '../../src/sandbox/request-listener.ts'
import { type ServiceError, serviceError } from '../../src/sandbox/search/service-error.ts'

/**
 * When a fault happens. Requests are counted from 1 within their kind; all that is given must hold, and
 * with nothing given it happens every time.
 */
type FaultTrigger = {
  /** Which requests are looked at. Default 'search'. */
  on?: RequestKind
  /** Only these request numbers. */
  requests?: readonly number[]
  /** Only this share of the requests, drawn from the seed. */
  rate?: number
  /** Only this often. */
  times?: number
  when?: (request: LoggedRequest) => boolean
}

export type FaultEffect =
  /** TCP reset before a byte of the response. The request is not carried out. */
  | { kind: 'reset' }
  /** TCP reset in the middle of the body. */
  | { kind: 'reset-mid-body' }
  /** The connection ends in the middle of the body, orderly. */
  | { kind: 'truncate' }
  /** Half of the body, then nothing more. */
  | { kind: 'stall' }
  | { kind: 'hang' }
  /** The right response, once the test lets it go. */
  | { kind: 'hold'; until: Promise<void> }
  | { kind: 'drip'; bytes?: number; everyMs?: number }
  /** Content-Length is one byte too small. */
  | { kind: 'wrong-content-length' }
  /** Status 502 and HTML, as a proxy sends it. Not carried out. */
  | { kind: 'html'; status?: number }
  /** Status 200, half of the JSON, a matching Content-Length. */
  | { kind: 'invalid-json' }
  /** Status 200 and valid JSON that is no search response. */
  | { kind: 'wrong-shape' }
  /** The right response, changed. */
  | { kind: 'rewrite'; rewrite: (text: string) => string | Uint8Array }
  /** An error status with the service's error body. Not carried out. */
  | { kind: 'status'; status: number; code?: string; retryAfter?: string; headers?: Record<string, string> }

export type Fault = FaultEffect & FaultTrigger

/**
 * What faults do to requests. They come before the rate limit, so that the request numbers in a list of faults do not
 * depend on timing. A fault counts against the rate limit, too.
 */
export function faulty(
  faults: readonly Fault[],
  seed: number,
): (request: LoggedRequest) => Interception | null {
  const pick = faultPicker(faults, seed)
  return (request) => {
    const fault = pick(request)
    if (fault === null) return null
    return {
      name: fault.kind,
      instead: instead(fault),
      change: (plain) => spoil(fault, plain),
      send(response, content, closed) {
        if (fault.kind === 'reset' || fault.kind === 'hang') request.status = 0
        return sendBroken(response, content, fault, closed)
      },
    }
  }
}

/** The response of a fault that keeps the request from being carried out; null: it is carried out. */
function instead(fault: Fault): ServiceError | null {
  switch (fault.kind) {
    case 'status': {
      const { status, retryAfter } = fault
      const headers = { ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }), ...fault.headers }
      return status === 429 && fault.code === undefined
        ? serviceError(429, 'RATELIMIT_REACHED', 'ratelimit reached', headers)
        : serviceError(status, fault.code ?? 'SANDBOX_FAULT', 'a fault that a test asked for', headers)
    }
    case 'reset':
    case 'hang':
    case 'html':
      return serviceError(502, 'SANDBOX_FAULT', 'a fault that a test asked for')
    default:
      return null
  }
}

/** Faults that replace what is said, not how it is sent. */
function spoil(fault: Fault, plain: SandboxResponse): SandboxResponse {
  switch (fault.kind) {
    case 'html':
      return {
        status: fault.status ?? 502,
        headers: { 'content-type': 'text/html' },
        body: Buffer.from('<html><head><title>502 Bad Gateway</title></head><body></body></html>\r\n'),
      }
    case 'invalid-json':
      return { ...plain, body: plain.body.subarray(0, Math.floor(plain.body.length / 2)) }
    case 'wrong-shape':
      return { ...plain, body: Buffer.from('{"results":[],"cursor":null}') }
    case 'rewrite': {
      const body = fault.rewrite(plain.body.toString('utf8'))
      return { ...plain, body: typeof body === 'string' ? Buffer.from(body) : Buffer.from(body) }
    }
    default:
      return plain
  }
}

/** Finds the fault for each request in turn; the first that applies wins. */
function faultPicker(faults: readonly Fault[], seed: number): (request: LoggedRequest) => Fault | null {
  const left = faults.map((fault) => fault.times ?? Number.POSITIVE_INFINITY)
  return (request) => {
    const index = faults.findIndex((fault, i) => left[i]! > 0 && applies(fault, request, seed + i))
    if (index < 0) return null
    left[index]! -= 1
    return faults[index]!
  }
}

function applies(fault: Fault, request: LoggedRequest, seed: number): boolean {
  const { kind, ordinal } = request
  if ((fault.on ?? 'search') !== kind) return false
  if (fault.requests && !fault.requests.includes(ordinal)) return false
  if (fault.rate !== undefined && fraction(seed, ordinal, 601) >= fault.rate) return false
  return fault.when?.(request) ?? true
}

/**
 * Sends a response in one of the ways in which networks and proxies break it. The connection is never
 * used again. Resolves when nothing more will be sent.
 */
async function sendBroken(
  response: ServerResponse,
  content: SandboxResponse,
  fault: FaultEffect,
  closed: AbortSignal,
): Promise<void> {
  const socket = response.socket
  if (!socket) return
  switch (fault.kind) {
    case 'reset':
      socket.resetAndDestroy()
      return
    case 'hang':
      return
    case 'hold':
      await fault.until
      if (!closed.aborted) send(response, content)
      return
    case 'reset-mid-body':
    case 'truncate':
    case 'stall':
      await writeHalf(response, content)
      if (fault.kind === 'truncate') socket.end()
      if (fault.kind !== 'reset-mid-body') return
      // Some time on the wire: a reset throws away what the other side has not read.
      await sleep(20, undefined, { signal: closed }).catch(() => {})
      socket.resetAndDestroy()
      return
    case 'wrong-content-length':
      // Written by hand, because Node's server refuses to send what contradicts its own header.
      socket.write(head(content, content.body.length - 1))
      socket.end(content.body)
      return
    case 'drip':
      await drip(response, content, fault.bytes ?? 64, fault.everyMs ?? 20, closed)
      return
    default:
      send(response, content)
  }
}

async function writeHalf(response: ServerResponse, content: SandboxResponse): Promise<void> {
  const half = content.body.subarray(0, Math.floor(content.body.length / 2))
  response.writeHead(content.status, { ...content.headers, 'content-length': content.body.length })
  await new Promise<void>((resolve) => {
    response.once('close', resolve)
    response.write(half, () => resolve())
  })
}

async function drip(
  response: ServerResponse,
  content: SandboxResponse,
  bytes: number,
  everyMs: number,
  closed: AbortSignal,
): Promise<void> {
  response.writeHead(content.status, { ...content.headers, 'content-length': content.body.length })
  for (let at = 0; at < content.body.length && !response.destroyed && !closed.aborted; at += bytes) {
    response.write(content.body.subarray(at, at + bytes))
    await sleep(everyMs, undefined, { signal: closed }).catch(() => {})
  }
  response.end()
}

function head(content: SandboxResponse, contentLength: number): string {
  const headers = { ...content.headers, 'content-length': String(contentLength), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${content.status} OK\r\n${lines.join('')}\r\n`
}
