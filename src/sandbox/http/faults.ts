import { fraction } from '../data/words.ts'
import type { LoggedRequest, RequestKind } from './request-log.ts'

/**
 * When a fault happens. Requests are counted from 1 within their kind; all that is given must hold, and
 * with nothing given it happens every time.
 */
export type FaultTrigger = {
  /** Which requests are looked at. Default 'search'. */
  on?: RequestKind | 'any'
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
  /** Silence from the start. The request is not carried out. */
  | { kind: 'hang' }
  /** The whole body, but slowly. Default 64 bytes every 20 ms. */
  | { kind: 'drip'; bytes?: number; everyMs?: number }
  /** Content-Length is off by so many bytes. Default -1. */
  | { kind: 'wrong-content-length'; by?: number }
  /** Status 502 and HTML, as a proxy sends it. Not carried out. */
  | { kind: 'html'; status?: number }
  /** Status 200, half of the JSON, a matching Content-Length. */
  | { kind: 'invalid-json' }
  /** Status 200 and valid JSON that is no search response, or the given value. */
  | { kind: 'wrong-shape'; body?: unknown }
  /** The right response, changed. */
  | { kind: 'rewrite'; rewrite: (text: string) => string | Uint8Array }
  /** An error status with the service's error body. Not carried out. */
  | {
      kind: 'status'
      status: number
      code?: string
      retryAfter?: string | (() => string)
      headers?: Readonly<Record<string, string>>
    }
  /** Every token handed out so far dies; this request is answered 401. */
  | { kind: 'revoke-tokens' }

export type Fault = FaultEffect & FaultTrigger

/** Finds the fault for each request in turn; the first that applies wins. */
export function faultPicker(
  faults: readonly Fault[],
  seed: number,
): (request: LoggedRequest) => Fault | null {
  const left = faults.map((fault) => fault.times ?? Number.POSITIVE_INFINITY)
  return (request) => {
    const index = faults.findIndex((fault, i) => left[i]! > 0 && applies(fault, request, seed + i))
    if (index < 0) return null
    left[index]! -= 1
    return faults[index]!
  }
}

function applies(fault: Fault, request: LoggedRequest, seed: number): boolean {
  const on = fault.on ?? 'search'
  const number = on === 'any' ? request.number : request.ordinal
  if (on !== 'any' && on !== request.kind) return false
  if (fault.requests && !fault.requests.includes(number)) return false
  if (fault.rate !== undefined && fraction(seed, number, 601) >= fault.rate) return false
  return fault.when?.(request) ?? true
}
