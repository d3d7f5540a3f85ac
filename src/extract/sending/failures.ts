import { ExportError, isExportError, plainError } from '../../core/index.ts'
import { type HttpResponse, retryAfterMs } from '../../http/index.ts'
import type { Tier } from '../endpoints.ts'
import type { Outgoing, SenderParts } from './outgoing.ts'
import { ResponseError, responseError } from './responses.ts'

/** An attempt that failed, after which another may succeed. */
export class FailedAttempt extends Error {
  constructor(
    readonly error: ExportError,
    /** The least backoff; null: the rate limiter's wait is enough. */
    readonly minWaitMs: number | null,
    /** `size`: the page did not come, and may come with fewer rows. `shape`: an answer came, and is none to such a request. */
    readonly about: 'size' | 'shape' | null = null,
  ) {
    super(error.message)
  }
}

/** A page did not come in any size. */
export class NotServed extends ExportError {}

/** What to throw for an error without a response, or of a response that cannot be used. */
export function failedAttempt(error: unknown, about: 'size' | null = null): unknown {
  if (isExportError(error, 'shape')) return new FailedAttempt(error, 0, 'shape')
  return isExportError(error, 'transient') ? new FailedAttempt(error, 0, about) : error
}

// Recommended by the public API documentation for a 429 without Retry-After.
const RATE_LIMITED_MS = 10_000
const MIN_PAUSE_MS = 1_000
// At the right rate a 429 is rare: requests that arrive a little too close together.
const MANY_RATE_LIMITED = 5
// If the service demands a longer wait than this, the run ends.
const LONGEST_WAIT_MS = 15 * 60_000
// 429 for as long as this, and nothing else, is an outage.
const OUTAGE_MS = 2 * 60_000

/** Decides what comes after a response other than 2xx, and makes all requests wait if it demands that. */
export class ErrorResponses {
  readonly #parts: SenderParts
  readonly #rateLimited: Record<Tier, number> = { search: 0, basic: 0, feed: 0 }
  /** When the first request was sent of those that got a 429 and nothing else since. */
  readonly #limitedSince = new Map<Tier, number>()

  constructor(parts: SenderParts) {
    this.#parts = parts
  }

  succeeded(tier: Tier): void {
    this.#limitedSince.delete(tier)
  }

  /** @param sentMs when the request was sent, on the monotonic clock. @returns what to throw */
  failure(response: HttpResponse, outgoing: Outgoing, sentMs: number): Error {
    const { status } = response
    const error = responseError(response, this.#parts, outgoing)
    // A service that sends Retry-After only needs time.
    const isOfSize = SIZE_STATUSES.has(status) && response.headers['retry-after'] === undefined
    if (isOfSize && (outgoing.smaller !== undefined || error.kind === 'transient'))
      return new FailedAttempt(error, 0, 'size')
    return error.kind === 'transient' ? this.#demandedWait(response, outgoing, sentMs, error) : error
  }

  #demandedWait(
    { status, headers }: HttpResponse,
    { about, tier, metered }: Outgoing,
    sentMs: number,
    error: ExportError,
  ): Error {
    const { budget, clock, log, pace } = this.#parts
    const requestedMs = retryAfterMs(headers, clock.now())
    if (requestedMs !== null && requestedMs > LONGEST_WAIT_MS) {
      budget.closeUntil(clock.now() + requestedMs)
      const what = `${error.what}; it demands a wait of ${Math.ceil(requestedMs / 60_000)} minutes`
      const next = 'Run again after that: the export resumes where it stopped.'
      return new ExportError({ kind: 'quota', what, where: error.where, next, cause: error })
    }
    if (status !== 429) return new FailedAttempt(error, requestedMs ?? 0)
    const sinceMs = this.#limitedSince.get(tier) ?? sentMs
    this.#limitedSince.set(tier, sinceMs)
    if (metered && sentMs - sinceMs >= OUTAGE_MS) {
      const what = `${error.what}, and to every request for two minutes`
      return new ResponseError(status, { ...plainError(error), what, cause: error })
    }
    const pauseMs = Math.max(requestedMs ?? RATE_LIMITED_MS, MIN_PAUSE_MS)
    for (const limit of Object.values(pace)) limit.pauseUntil(clock.monotonicMs() + pauseMs)
    if (!pace[tier].slowDown(sentMs)) return new FailedAttempt(error, null)
    const fields = { event: 'wait', for: 'pause', request: about, wait_ms: pauseMs }
    log('warn', 'the service responded with 429; all requests wait', fields)
    // Once a run: the progress shows each pause.
    if (++this.#rateLimited[tier] === MANY_RATE_LIMITED) {
      const key = tier === 'basic' ? 'basic_requests_per_second' : 'requests_per_second'
      log('warn', `429 comes again and again: set service.${key} to what the service allows`, {
        responses: MANY_RATE_LIMITED,
      })
    }
    return new FailedAttempt(error, null)
  }
}

// Statuses that speak of the size of a page. Everything else may happen to a page of any size.
const SIZE_STATUSES = new Set([408, 413, 504])
