import { ExportError, isExportError, numberOf, plainError } from '../../core/index.ts'
import { backoffMs, type HttpResponse, retryAfterMs } from '../../http/index.ts'
import type { Tier } from '../pace/rate-limit.ts'
import type { Outgoing, SenderParts } from './outgoing.ts'
import { isWebPage, ResponseError, responseError } from './responses.ts'

/** A request on its way to a response that can be read, in whatever size. */
export type Sending = {
  outgoing: Outgoing
  /** Whether its token was rejected and replaced. */
  hasRenewed: boolean
  attempts: number
  /** Failed attempts in its present size. Those do not count that got a 429 after other requests had passed. */
  failures: number
  /** {@link FailedAttempt.limitedSince} of its last 429; null: it had none. */
  limitedSince: number | null
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
// Before a data set has its first page, a web page in place of JSON is another server rather than a brief maintenance.
const RETRIES_OF_A_WEB_PAGE = 2
// A complete answer of another shape comes again more often than not, and each may be charged.
const RETRIES_OF_A_SHAPE = 1
// A page is asked for twice in each size.
const RETRIES_OF_A_SIZE = 1
// There are many sizes.
const LONGEST_WAIT_OF_SIZES_MS = 8_000
// Statuses that speak of the size of a page. Everything else may happen to a page of any size.
const SIZE_STATUSES = new Set([408, 413, 504])

/** Decides what follows a failed attempt: whether there is another, when, and in which size; or a wait of all requests. */
export class Failures {
  readonly #parts: SenderParts
  readonly #rateLimited: Record<Tier, number> = { search: 0, basic: 0, feed: 0 }
  /** When the first request was sent of those that got a 429 and nothing else since. */
  readonly #limitedSince = new Map<Tier, number>()
  /** Reasons for retries that were warned of since the service last gave a usable response. */
  readonly #reasons = new Set<string>()

  constructor(parts: SenderParts) {
    this.#parts = parts
  }

  succeeded(tier: Tier): void {
    this.#limitedSince.delete(tier)
    this.#reasons.clear()
  }

  /** Of a response other than 2xx. @param sentMs when the request was sent, on the monotonic clock @returns what to throw */
  ofResponse(response: HttpResponse, outgoing: Outgoing, sentMs: number): Error {
    const error = responseError(response, this.#parts, outgoing)
    // A service that sends Retry-After only needs time.
    const isOfSize = SIZE_STATUSES.has(response.status) && response.headers['retry-after'] === undefined
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
    const failed = new FailedAttempt(error, null, null, sinceMs)
    if (!pace[tier].slowDown(sentMs)) return failed
    const fields = { event: 'wait', for: 'pause', request: about, wait_ms: pauseMs }
    log('warn', 'the service responded with 429; all requests wait', fields)
    // Once a run: the progress shows each pause.
    if (++this.#rateLimited[tier] === MANY_RATE_LIMITED) {
      const key = tier === 'basic' ? 'basic_requests_per_second' : 'requests_per_second'
      log('warn', `429 comes again and again: set service.${key} to what the service allows`, {
        responses: MANY_RATE_LIMITED,
      })
    }
    return failed
  }

  /** Decides what the next attempt requests, and when. @returns null: another one would fail as well */
  waitMs(sending: Sending, failed: FailedAttempt): number | null {
    const { log } = this.#parts
    const { error, minWaitMs, about, limitedSince } = failed
    const most = this.#retriesAfter(failed, sending.outgoing)
    const { limitedSince: before } = sending
    sending.limitedSince = limitedSince ?? before
    if (limitedSince === null || before === null || limitedSince === before) sending.failures++
    if (sending.failures > most) {
      const smaller = about === 'size' ? (sending.outgoing.smaller?.() ?? null) : null
      if (smaller === null) return null
      const { about: request, size: from } = sending.outgoing
      const fields = { event: 'page_size', request, from, page_size: smaller.size, reason: error.what }
      log('warn', 'a page did not come; it is requested with fewer rows', fields)
      sending.outgoing = { ...sending.outgoing, ...smaller }
      sending.failures = 0
    }
    const { outgoing, attempts, failures } = sending
    // A smaller page is sent at once.
    const mostMs = failures === 0 ? 0 : about === 'size' ? LONGEST_WAIT_OF_SIZES_MS : Number.POSITIVE_INFINITY
    const backMs = Math.min(mostMs, backoffMs(attempts - 1))
    const waitMs = minWaitMs === null ? 0 : Math.max(backMs, minWaitMs)
    // The wait after a 429 is logged already. All chains meet an outage: it is one warning.
    const isWarning = waitMs > 0 && !this.#reasons.has(error.what)
    if (isWarning) this.#reasons.add(error.what)
    log(isWarning ? 'warn' : 'debug', 'trying again', {
      event: 'retry',
      request: outgoing.about,
      retry: Math.max(1, failures),
      of: most,
      wait_ms: Math.round(waitMs),
      reason: error.what,
    })
    return waitMs
  }

  #retriesAfter({ error, about }: FailedAttempt, outgoing: Outgoing): number {
    const { settings, contact } = this.#parts
    const { smaller, retries = settings.retries } = outgoing
    if (about === 'shape') return Math.min(RETRIES_OF_A_SHAPE, retries)
    if (about === 'size' && smaller !== undefined) return Math.min(RETRIES_OF_A_SIZE, retries)
    return isWebPage(error) && !contact.hasSucceeded ? Math.min(RETRIES_OF_A_WEB_PAGE, retries) : retries
  }
}

/** An attempt that failed, after which another may succeed. */
export class FailedAttempt extends Error {
  constructor(
    readonly error: ExportError,
    /** The least backoff; null: the rate limiter's wait is enough. */
    readonly minWaitMs: number | null,
    /** `size`: the page did not come, and may come with fewer rows. `shape`: an answer came, and is none to such a request. */
    readonly about: 'size' | 'shape' | null = null,
    /** Of a 429: when the first request was sent of those that got one since the last that passed. */
    readonly limitedSince: number | null = null,
  ) {
    super(error.message)
  }
}

/** What to throw for an error without a response, or of a response that cannot be used. */
export function failedAttempt(error: unknown, about: 'size' | null = null): unknown {
  if (isExportError(error, 'shape')) return new FailedAttempt(error, 0, 'shape')
  return isExportError(error, 'transient') ? new FailedAttempt(error, 0, about) : error
}

/** A page did not come in any size. */
export class NotServed extends ExportError {}

/** Statuses of a gateway, behind which a page may have too many rows. */
const GATEWAY = new Set([502, 503])

/** What to throw after the last attempt. */
export function exhausted(
  { error, about }: FailedAttempt,
  { attempts, outgoing: { size } }: Sending,
): ExportError {
  const { where } = error
  const kind = error.kind === 'shape' ? 'data' : error.kind
  const what = `${error.what}; failed after ${numberOf(attempts, 'attempt')}`
  const isOfGateway = size !== null && error instanceof ResponseError && GATEWAY.has(error.status)
  const next = isOfGateway
    ? `${error.next} If only pages of this size fail (${size} rows), lower extract.page_size.`
    : error.next
  const details = { kind, what, where, next, cause: error }
  return about === 'size' ? new NotServed({ ...details, kind: 'transient' }) : new ExportError(details)
}
