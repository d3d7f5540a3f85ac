import pRetry from 'p-retry'
import type { Clock } from '../core/index.ts'
import type { ResponseHeaders } from './http-client.ts'

type RetryOptions = {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** @param attempt how many there were @returns milliseconds until the next; null: it would fail as well */
  readonly waitMs: (error: unknown, attempt: number) => number | null
}

/** Waits are on the given clock, and end with the signal. @throws what the last attempt threw; the signal's reason */
export function retry<T>(attempt: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, signal, waitMs } = options
  return pRetry(attempt, {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 0,
    maxTimeout: 0,
    shouldRetry: async ({ error, attemptNumber }) => {
      signal.throwIfAborted()
      const ms = waitMs(error, attemptNumber)
      if (ms !== null && ms > 0) await clock.sleep(ms, signal)
      return ms !== null
    },
  })
}

const BASE_MS = 500
const CAP_MS = 60_000

/** Doubles from half a second to a minute; between half of it and all of it, so that clients drift apart. */
export function backoffMs(retriesBefore: number): number {
  const ceilingMs = Math.min(CAP_MS, BASE_MS * 2 ** retriesBefore)
  return ceilingMs * (0.5 + Math.random() / 2)
}

// A year. Longer waits mean the same, and dates after such a wait are still valid.
const LONGEST_MS = 366 * 86_400_000

/** Milliseconds by `Retry-After`; null: not valid. A date counts from the response's `Date`: clocks need not agree. */
export function retryAfterMs(headers: ResponseHeaders, nowMs: number): number | null {
  const value = headers['retry-after']?.trim()
  if (value === undefined) return null
  if (/^\d+(\.\d+)?$/.test(value)) return Math.min(Number(value) * 1000, LONGEST_MS)
  const until = httpDate(value)
  if (until === null) return null
  const waitMs = until - (httpDate(headers.date) ?? nowMs)
  return Math.min(Math.max(0, waitMs), LONGEST_MS)
}

/** Only dates of the HTTP form, which begin with a day's name (RFC 9110 5.6.7): Date.parse accepts much more. */
function httpDate(value: string | undefined): number | null {
  if (value === undefined || !/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(value)) return null
  const ms = Date.parse(value)
  return Number.isNaN(ms) ? null : ms
}
