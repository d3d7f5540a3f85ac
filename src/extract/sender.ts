import { type Auth, type Clock, ExportError, isExportError } from '../core/index.ts'
import type { Tier } from './endpoints.ts'
import type { Budget, Reservation } from './pace/budget.ts'
import { PageTooLarge, type Sizing } from './pace/page-sizes.ts'
import type { RateLimit } from './pace/rate-limit.ts'
import { retryAfterMs, TryAgain } from './pace/retry.ts'
import type { ChargedRequest, SearchLedger } from './pace/search-ledger.ts'
import { type ResponseError, responseError } from './responses.ts'
import type { ServiceCounters } from './service-counters.ts'
import type { Token, Tokens } from './tokens.ts'
import { isSuccess, ResponseTimeout } from './transport/exchange.ts'
import type { HttpClient, HttpResponse } from './transport/http-client.ts'
import type { CurrentWaits } from './wait-board.ts'

/** Writes a log line. Lines hold no secrets. */
export type Log = (
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, string | number | boolean | null>>,
) => void

export type Outgoing = {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly tier: Tier
  /** JSON; null: none. */
  readonly body: string | null
  /** The subject of the request, for the log: `domain.acme.com/all, page 3`. */
  readonly about: string
  /** Names the request in messages. */
  readonly where: string
  /** Whether the request has a cursor. */
  readonly hasCursor: boolean
  /** Whether the request counts against the budget. */
  readonly metered: boolean
  /** Requested rows, if they may cost searches; null: the request costs none. */
  readonly size: number | null
  /** How the size of the page changes; null: it does not. */
  readonly sizing: Sizing | null
  /** The feed that is requested, for messages; absent: none is. */
  readonly feed?: string | undefined
  /** Ends every wait before the request is written. */
  readonly signal: AbortSignal
  /** Aborts the request, written or not; null: only the run's own signals do. */
  readonly abort: AbortSignal | null
}

type SenderParts = {
  readonly http: HttpClient
  readonly pace: Readonly<Record<Tier, RateLimit>>
  readonly budget: Budget
  readonly ledger: SearchLedger
  readonly auth: Auth
  readonly clock: Clock
  readonly log: Log
  readonly counters: ServiceCounters
  readonly board: CurrentWaits
}

export type SentOk = {
  readonly kind: 'ok'
  readonly body: Uint8Array
  /** From the request to the last byte. */
  readonly ms: number
  /** The service's time, epoch ms in whole seconds; null: not said. */
  readonly dateMs: number | null
  /** Receives the number of rows; null: the request cost no searches. */
  readonly flight: ChargedRequest | null
  release(): void
}

type Sent =
  | SentOk
  /** Status 401: `token` is not accepted, or no longer. */
  | { readonly kind: 'unauthorised'; readonly token: Token; readonly error: ExportError }

// Recommended by the public API documentation for a 429 without Retry-After.
const RATE_LIMITED_MS = 10_000
const MIN_PAUSE_MS = 1_000
// At the right rate a 429 is rare: requests that arrive a little too close together.
const MANY_RATE_LIMITED = 5
// If the service demands a longer wait than this, the run ends.
const LONGEST_WAIT_MS = 15 * 60_000

const MAX_STALE_TOKENS = 3

/** All requests were paused between this permit and the write. */
class PermitLost extends Error {}

/** The reservation no longer covers the cost of the request. */
class ReservationLost extends Error {}

/** Sends requests within the budget, each after it has a permit, and reads the limits in their responses. */
export class Sender {
  readonly #parts: SenderParts
  readonly #rateLimited: Record<Tier, number> = { search: 0, basic: 0, feed: 0 }

  constructor(parts: SenderParts) {
    this.#parts = parts
  }

  /**
   * Sends one request.
   * @param attempt counts from 1 on
   * @param onSent called when the request is written
   * @throws TryAgain when another attempt may help
   * @throws PageTooLarge when a smaller page may help
   * @throws ExportError otherwise; or the signal's reason
   */
  async send(outgoing: Outgoing, attempt: number, tokens: Tokens, onSent: () => void): Promise<Sent> {
    for (;;) {
      try {
        return await this.#sendReserved(outgoing, attempt, tokens, onSent)
      } catch (error) {
        if (!(error instanceof ReservationLost)) throw error
      }
    }
  }

  async #sendReserved(
    outgoing: Outgoing,
    attempt: number,
    tokens: Tokens,
    onSent: () => void,
  ): Promise<Sent> {
    const { auth, budget, counters } = this.#parts
    const { about, where, hasCursor } = outgoing
    const reservation = await reserve(budget, outgoing)
    const { flight } = reservation
    let isWritten = false
    try {
      const { response, token, ms } = await this.#sendPermitted(
        outgoing,
        attempt,
        tokens,
        reservation,
        () => {
          isWritten = true
          counters.sent(outgoing.metered && attempt > 1)
          onSent()
        },
      )
      this.#readLimits(response, about, flight)
      if (outgoing.tier === 'search') counters.responded(response.status, hasCursor)
      const { status, headers, body, release } = response
      const dateMs = Date.parse(headers.date ?? '')
      if (isSuccess(status))
        return { kind: 'ok', body, ms, dateMs: Number.isNaN(dateMs) ? null : dateMs, flight, release }
      release()
      const error = responseError(response, auth, { where, hasCursor, feed: outgoing.feed })
      if (status === 401) return { kind: 'unauthorised', token, error }
      const isTimeout = status === 504 || status === 408
      if (
        outgoing.sizing?.canShrink === true &&
        (isTooLarge(response, error) || isUnknownSize(outgoing, status))
      ) {
        throw tooLarge(outgoing.sizing, error, ms, !isTimeout && !isUnknownSize(outgoing, status))
      }
      throw error.kind === 'transient' ? this.#demandedWait(response, outgoing, error) : error
    } finally {
      if (isWritten) {
        // Without a response, it is not known whether the request was charged.
        flight?.responded(null, true)
      }
      reservation.release()
    }
  }

  async #sendPermitted(
    outgoing: Outgoing,
    attempt: number,
    tokens: Tokens,
    reservation: Reservation,
    onWrite: () => void,
  ): Promise<{ response: HttpResponse; token: Token; ms: number }> {
    const { board, http, pace } = this.#parts
    for (let tries = 1; ; tries++) {
      const hasToken = board.token()
      const token = await tokens.current().finally(hasToken)
      const permit = await pace[outgoing.tier].permit(outgoing.signal)
      let hasEnded = (_outcome: Readonly<Record<string, string | number>>): number => 0
      try {
        // The wait for a permit can be long. A token that expires during each wait must not keep the request here.
        if (!tokens.isCurrent(token) && tries <= MAX_STALE_TOKENS) continue
        const response = await http.send({ ...outgoing, headers: requestHeaders(outgoing, token) }, () => {
          if (!reservation.holds()) throw new ReservationLost()
          if (!permit.take()) throw new PermitLost()
          reservation.spend()
          onWrite()
          hasEnded = this.#begin(outgoing, attempt)
        })
        return { response, token, ms: hasEnded({ status: response.status }) }
      } catch (error) {
        if (error instanceof PermitLost) continue
        if (error instanceof ReservationLost) throw error
        const ms = hasEnded({ reason: isExportError(error) ? error.what : 'unexpected error' })
        throw error instanceof ResponseTimeout && outgoing.sizing?.canShrink === true
          ? tooLarge(outgoing.sizing, error, ms, false)
          : asTryAgain(error)
      } finally {
        permit.end()
      }
    }
  }

  /** @returns a function to call with the outcome when the response is there or will not come */
  #begin({ method, url, about }: Outgoing, attempt: number) {
    const { board, clock, log } = this.#parts
    const startMs = clock.monotonicMs()
    const hasResponse = board.response()
    return (outcome: Readonly<Record<string, string | number>>): number => {
      hasResponse()
      const duration_ms = Math.round(clock.monotonicMs() - startMs)
      const request = { request: about, method, path: url.pathname, attempt }
      log('debug', 'request', { event: 'request', ...request, ...outcome, duration_ms })
      return duration_ms
    }
  }

  /** Reads the limits in the response's headers, whatever its status. */
  #readLimits({ status, headers }: HttpResponse, about: string, flight: ChargedRequest | null): void {
    const { ledger, log } = this.#parts
    if (flight !== null || ledger.isReported === false) {
      const remaining = searchesLeft(headers['x-flare-global-searches-remaining'])
      if (remaining === null && isSuccess(status)) ledger.notReported()
      flight?.responded(remaining, isSuccess(status) || status === 408 || status >= 500)
      if (!isSuccess(status)) flight?.rows(null)
    }
    const batchReached = headers['x-flare-global-searches-batch-reached']
    if (batchReached !== undefined && batchReached !== 'false') {
      log('debug', 'the next request of this search may be charged as another search', { request: about })
    }
  }

  /** The error that makes a request wait as its response demands. */
  #demandedWait({ status, headers }: HttpResponse, { about, tier }: Outgoing, error: ExportError): Error {
    const { budget, clock, log, pace } = this.#parts
    const requestedMs = retryAfterMs(headers, clock.now())
    if (requestedMs !== null && requestedMs > LONGEST_WAIT_MS) {
      budget.closeUntil(clock.now() + requestedMs)
      const minutes = Math.ceil(requestedMs / 60_000)
      return new ExportError({
        kind: 'quota',
        what: `${error.what}; it demands a wait of ${minutes} minutes`,
        where: error.where,
        next: 'Run again after that: the export resumes where it stopped.',
      })
    }
    if (status !== 429) return new TryAgain(error, 'backoff', requestedMs ?? 0)
    const pauseMs = Math.max(requestedMs ?? RATE_LIMITED_MS, MIN_PAUSE_MS)
    for (const limit of Object.values(pace)) limit.pauseUntil(clock.monotonicMs() + pauseMs)
    log('warn', 'the service responded with 429; all requests wait', {
      event: 'wait',
      for: 'pause',
      request: about,
      wait_ms: pauseMs,
    })
    // Once a run: the progress shows each pause.
    if (++this.#rateLimited[tier] === MANY_RATE_LIMITED) {
      const key = tier === 'basic' ? 'basic_requests_per_second' : 'requests_per_second'
      log('warn', `429 comes again and again: set service.${key} to what the service allows`, {
        responses: MANY_RATE_LIMITED,
      })
    }
    return new TryAgain(error, 'pace')
  }
}

/**
 * Whether a smaller page may help: no response came in time, or it is a gateway's. A service that sends Retry-After
 * only needs time.
 */
function isTooLarge({ status, headers }: HttpResponse, { isGateways }: ResponseError): boolean {
  if (headers['retry-after'] !== undefined) return false
  return status === 504 || status === 408 || ((status === 502 || status === 503) && isGateways)
}

/** The largest page of a feed is not known, so a first refusal of a larger one may concern its size. */
function isUnknownSize({ tier, hasCursor, sizing }: Outgoing, status: number): boolean {
  return tier === 'feed' && !hasCursor && sizing?.isLarger === true && SIZE_STATUSES.has(status)
}

// Statuses by which a service may reject a parameter.
const SIZE_STATUSES = new Set([400, 413, 422])

/** Tells all chains at once that a page could not be served: their next requests may be about to be written. */
function tooLarge(sizing: Sizing, error: ExportError, ms: number, isRefusal: boolean): PageTooLarge {
  sizing.failed({ ms, why: error.what, isRefusal })
  return new PageTooLarge(error, true)
}

/** Wraps transient ExportErrors, so that they are retried. */
export function asTryAgain(error: unknown): unknown {
  return isExportError(error, 'transient') ? new TryAgain(error) : error
}

/** null: the service does not report it, or reports an impossible number (-1 as an unsigned 64-bit integer). */
function searchesLeft(header: string | readonly string[] | undefined): number | null {
  if (typeof header !== 'string' || !/^\d+$/.test(header)) return null
  const left = Number(header)
  return Number.isSafeInteger(left) ? left : null
}

async function reserve(budget: Budget, outgoing: Outgoing): Promise<Reservation> {
  const { metered, where } = outgoing
  if (metered) return budget.reserve(outgoing)
  budget.checkOpen(where)
  const holds = (): boolean => {
    budget.checkOpen(where)
    return true
  }
  return { flight: null, holds, spend: () => {}, release: () => {} }
}

function requestHeaders({ body }: Outgoing, token: Token): Record<string, string> {
  return {
    authorization: token.header,
    accept: 'application/json',
    'accept-encoding': 'gzip',
    'user-agent': 'spillway',
    ...(body === null ? {} : { 'content-type': 'application/json' }),
  }
}
