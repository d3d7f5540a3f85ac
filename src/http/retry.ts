import pRetry from 'p-retry'
import type { Clock } from '../core/index.ts'

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
