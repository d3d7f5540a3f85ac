import type { IncomingHttpHeaders } from 'node:http'
import pRetry from 'p-retry'
import { type Clock, ExportError } from '../../core/index.ts'

// A year. Longer waits mean the same, and dates after such a wait are still valid.
const LONGEST_MS = 366 * 86_400_000

/** Thrown by an attempt to request another one; `error` is thrown when no retry is left. */
export class TryAgain extends Error {
  override readonly name = 'TryAgain'

  constructor(
    readonly error: ExportError,
    /**
     * `backoff`: wait longer with each retry, and no less than `atLeastMs`;
     * `pace`: the rate limiter's wait is enough.
     */
    readonly wait: 'backoff' | 'pace' = 'backoff',
    readonly atLeastMs = 0,
  ) {
    super(error.message)
  }
}

type RetryOptions = {
  /** Attempts after the first. */
  readonly retries: number
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Whether to stop before the retries are exhausted; left out: never. @param retries sent so far */
  readonly isHopeless?: (error: ExportError, retries: number) => boolean
  /**
   * Called before each wait.
   * @param number of the retry, from 1 on
   * @returns to be called after the wait
   */
  onRetry(error: ExportError, waitMs: number, number: number): () => void
}

const BASE_MS = 500
const CAP_MS = 60_000

/**
 * Runs `attempt` until it succeeds, fails with anything but {@link TryAgain}, or no retry is left.
 * Waits end with the signal's reason when it aborts.
 */
export async function retry<T>(
  attempt: (number: number) => Promise<T>,
  { retries, clock, signal, isHopeless, onRetry }: RetryOptions,
): Promise<T> {
  let attempts = 0
  const counted = (number: number): Promise<T> => {
    attempts = number
    return attempt(number)
  }
  try {
    return await pRetry(counted, {
      retries,
      // The wait is below, on a clock that tests can replace.
      minTimeout: 0,
      maxTimeout: 0,
      shouldRetry: async ({ error, retriesConsumed, attemptNumber }) => {
        if (!(error instanceof TryAgain)) return false
        signal.throwIfAborted()
        if (isHopeless?.(error.error, attemptNumber - 1)) return false
        const waitMs = error.wait === 'pace' ? 0 : Math.max(backoffMs(retriesConsumed), error.atLeastMs)
        const isOver = onRetry(error.error, waitMs, attemptNumber)
        try {
          if (waitMs > 0) await clock.sleep(waitMs, signal)
        } finally {
          isOver()
        }
        return true
      },
    })
  } catch (error) {
    if (!(error instanceof TryAgain)) throw error
    const { kind, what, where, next } = error.error
    const times = attempts === 1 ? '1 attempt' : `${attempts} attempts`
    throw new ExportError({ kind, what: `${what}; failed after ${times}`, where, next, cause: error.error })
  }
}

/** Doubles from half a second to a minute; between half of it and all of it, so that clients drift apart. */
function backoffMs(retriesBefore: number): number {
  const ceilingMs = Math.min(CAP_MS, BASE_MS * 2 ** retriesBefore)
  return ceilingMs * (0.5 + Math.random() / 2)
}

/**
 * The wait that a response demands by its `Retry-After` header (seconds or an HTTP date), in milliseconds.
 * A date is compared with the response's own `Date` if it has one: the two clocks need not agree.
 * @returns null when there is no valid header
 */
export function retryAfterMs(headers: IncomingHttpHeaders, nowMs: number): number | null {
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
