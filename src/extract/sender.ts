import { type Auth, type Clock, ExportError, isExportError } from '../core/index.ts'
import type { Budget, Reservation } from './pace/budget.ts'
import type { RateLimit } from './pace/rate-limit.ts'
import { retryAfterMs, TryAgain } from './pace/retry.ts'
import type { Flight, SearchLedger } from './pace/search-ledger.ts'
import { type ResponseError, responseError } from './responses.ts'
import type { Token, Tokens } from './tokens.ts'
import { type HttpClient, type HttpResponse, isSuccess, ResponseTimeout } from './transport/http-client.ts'
/** Where lines for the log go. Nothing secret is among them. */
export type Log = (
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, string | number | boolean | null>>,
) => void

/** Searches have a pace of their own; everything else shares the other. */
type Tier = 'search' | 'basic'

export type Outgoing = {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly tier: Tier
  /** JSON; null: none. */
  readonly body: string | null
  /** What it is about, for the log: `domain.acme.com/all, page 3`. */
  readonly about: string
  /** Names the request in messages. */
  readonly where: string
  /** Whether a cursor goes along. */
  readonly hasCursor: boolean
  /** Whether it is paid for from the budget. */
  readonly metered: boolean
  /** Rows that it requests, if they may cost searches; null: it costs none. */
  readonly size: number | null
  /** Whether fewer rows can be requested instead, if the service can't serve so many. */
  readonly canShrink: boolean
  /** Ends every wait before it is written. */
  readonly signal: AbortSignal
  /** Breaks it off, written or not; null: nothing does but the run's own signals. */
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
  /** Called with the status of every response to a search; `hasCursor`: to a request that had one. */
  readonly onStatus: (status: number, hasCursor: boolean) => void
  readonly board: WaitBoard
}

type Sent =
  | {
      readonly kind: 'answered'
      readonly body: Uint8Array
      /** From the request to the last byte. */
      readonly ms: number
      /** To be told how many rows it has; null: it cost no searches. */
      readonly flight: Flight | null
      release(): void
    }
  /** Status 401: `token` is not, or no longer, accepted. */
  | { readonly kind: 'unauthorised'; readonly token: Token; readonly error: ExportError }

/**
 * Sends one request once it has a permit and within the budget. `onSent` is called when the request is written.
 * `attempt` counts from 1 on.
 * @throws TryAgain when another attempt may help
 * @throws ExportError otherwise; or the signal's reason
 */
export type Send = (outgoing: Outgoing, attempt: number, tokens: Tokens, onSent: () => void) => Promise<Sent>

// Recommended by the public API documentation where a 429 says nothing better.
const RATE_LIMITED_MS = 10_000
const LEAST_PAUSE_MS = 1_000
// Who is told to wait longer than this had better run again later.
const LONGEST_WAIT_MS = 15 * 60_000

const MAX_STALE_TOKENS = 3

/** Everybody was paused between getting a permit and writing. */
class PermitLost extends Error {}

/** What was reserved no longer pays for it. */
class ReservationLost extends Error {}

/** The service could not serve so many rows: by what it or a gateway says, or because no response came in time. */
export class PageTooLarge extends ExportError {
  constructor(
    { kind, what, where, next }: ExportError,
    /** After which this was known. */
    readonly ms: number,
  ) {
    super(kind, what, where, next)
  }
}

export function sender(parts: SenderParts): Send {
  const { http, pace, budget, ledger, auth, clock, log, onStatus, board } = parts

  async function sendWithPermit(
    outgoing: Outgoing,
    attempt: number,
    tokens: Tokens,
    reservation: Reservation,
    onWrite: () => void,
  ): Promise<{ response: HttpResponse; token: Token; ms: number }> {
    for (let tries = 1; ; tries++) {
      const hasToken = board.token()
      const token = await tokens.current().finally(hasToken)
      const permit = await pace[outgoing.tier].permit(outgoing.signal)
      let hasEnded = (_facts: Readonly<Record<string, string | number>>): number => 0
      try {
        // A permit can be long in coming; still, a token that never outlives the wait must not hold us for ever.
        if (!tokens.isCurrent(token) && tries <= MAX_STALE_TOKENS) continue
        const response = await http.send({ ...outgoing, headers: requestHeaders(outgoing, token) }, () => {
          if (!reservation.holds()) throw new ReservationLost()
          if (!permit.take()) throw new PermitLost()
          reservation.spend()
          onWrite()
          hasEnded = begin(outgoing, attempt)
        })
        return { response, token, ms: hasEnded({ status: response.status }) }
      } catch (error) {
        if (error instanceof PermitLost) continue
        if (error instanceof ReservationLost) throw error
        const ms = hasEnded({ reason: isExportError(error) ? error.what : 'not foreseen' })
        throw error instanceof ResponseTimeout && outgoing.canShrink
          ? new PageTooLarge(error, ms)
          : asTryAgain(error)
      } finally {
        permit.end()
      }
    }
  }

  /** @returns a function to call when the response is there or will not come, with its facts */
  function begin({ method, url, about }: Outgoing, attempt: number) {
    const startMs = clock.monotonicMs()
    const hasResponse = board.response()
    return (facts: Readonly<Record<string, string | number>>): number => {
      hasResponse()
      const duration_ms = Math.round(clock.monotonicMs() - startMs)
      const request = { request: about, method, path: url.pathname, attempt }
      log('debug', 'request', { event: 'request', ...request, ...facts, duration_ms })
      return duration_ms
    }
  }

  /** Reads what the response says about limits, whatever its status. */
  function readLimits({ status, headers }: HttpResponse, about: string, flight: Flight | null): void {
    if (flight !== null || ledger.tells === false) {
      const remaining = searchesLeft(headers['x-flare-global-searches-remaining'])
      if (remaining === null && isSuccess(status)) ledger.saysNothing()
      flight?.responded(remaining, isSuccess(status) || status === 408 || status >= 500)
      if (!isSuccess(status)) flight?.rows(null)
    }
    const batchReached = headers['x-flare-global-searches-batch-reached']
    if (batchReached !== undefined && batchReached !== 'false') {
      log('debug', 'the next request of this search may be charged as another search', { request: about })
    }
  }

  /** The wait that a response demands. */
  function patience({ status, headers }: HttpResponse, about: string, error: ExportError): Error {
    const requestedMs = retryAfterMs(headers, clock.now())
    if (requestedMs !== null && requestedMs > LONGEST_WAIT_MS) {
      budget.closeUntil(clock.now() + requestedMs)
      const minutes = Math.ceil(requestedMs / 60_000)
      return new ExportError(
        'quota',
        `${error.what}; it asks to wait ${minutes} minutes`,
        error.where,
        'Run again after that: the export goes on from where it stopped.',
      )
    }
    if (status !== 429) return new TryAgain(error, 'backoff', requestedMs ?? 0)
    const pauseMs = Math.max(requestedMs ?? RATE_LIMITED_MS, LEAST_PAUSE_MS)
    for (const limit of Object.values(pace)) limit.pauseUntil(clock.monotonicMs() + pauseMs)
    log('warn', 'the service answered 429; everybody waits', {
      event: 'wait',
      for: 'pause',
      request: about,
      wait_ms: pauseMs,
    })
    return new TryAgain(error, 'pace')
  }

  async function sendOnce(
    outgoing: Outgoing,
    attempt: number,
    tokens: Tokens,
    onSent: () => void,
  ): Promise<Sent> {
    const { about, where, hasCursor } = outgoing
    const reservation = await reserve(budget, outgoing)
    const { flight } = reservation
    let isWritten = false
    try {
      const { response, token, ms } = await sendWithPermit(outgoing, attempt, tokens, reservation, () => {
        isWritten = true
        onSent()
      })
      readLimits(response, about, flight)
      if (outgoing.tier === 'search') onStatus(response.status, hasCursor)
      const { status, body, release } = response
      if (isSuccess(status)) return { kind: 'answered', body, ms, flight, release }
      release()
      const error = responseError(response, auth, { where, hasCursor })
      if (status === 401) return { kind: 'unauthorised', token, error }
      if (outgoing.canShrink && isTooLarge(response, error)) throw new PageTooLarge(error, ms)
      throw error.kind === 'transient' ? patience(response, about, error) : error
    } finally {
      if (isWritten) {
        // Without a response, it is unknown whether the request was charged.
        flight?.responded(null, true)
      }
      reservation.release()
    }
  }

  return async (outgoing, attempt, tokens, onSent) => {
    for (;;) {
      try {
        return await sendOnce(outgoing, attempt, tokens, onSent)
      } catch (error) {
        if (!(error instanceof ReservationLost)) throw error
      }
    }
  }
}

/**
 * Whether fewer rows may be what helps: nothing came in time, or a gateway speaks where the service should. A service
 * that says when to come back only wants time.
 */
function isTooLarge({ status, headers }: HttpResponse, { isGateways }: ResponseError): boolean {
  if (headers['retry-after'] !== undefined) return false
  return status === 504 || status === 408 || ((status === 502 || status === 503) && isGateways)
}

/** ExportErrors that pass with time ask for another attempt. */
export function asTryAgain(error: unknown): unknown {
  return isExportError(error, 'transient') ? new TryAgain(error) : error
}

/** null: the service does not say, or names a number that no account has (-1 as 64 bits without a sign). */
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

/** A request that failed and will be sent again. */
type RetryWait = {
  /** Which retry it is, from 1 on, and how many there may be. */
  readonly number: number
  readonly of: number
  /** Epoch ms. */
  readonly untilMs: number
  /** Why the last attempt failed. */
  readonly reason: string
}

/** What requests wait for at a moment. Times are epoch ms; null: for nothing of the kind. */
export type Waits = {
  /** The retry that comes first. */
  readonly retry: RetryWait | null
  /** How many requests wait for their retry. */
  readonly retries: number
  /** Since when a token is being read or renewed. */
  readonly tokenSinceMs: number | null
  /** Since when the oldest request in flight waits for its response. */
  readonly answerSinceMs: number | null
}

/** Keeps what the requests of a service wait for. */
export class WaitBoard {
  readonly #now: () => number
  readonly #onChange: () => void
  // Each in the order of their beginnings.
  readonly #tokens = new Set<{ readonly sinceMs: number }>()
  readonly #responses = new Set<{ readonly sinceMs: number }>()
  readonly #retries = new Set<RetryWait>()

  /** @param onChange called when something is waited for, and when it has come */
  constructor(now: () => number, onChange: () => void) {
    this.#now = now
    this.#onChange = onChange
  }

  /** @returns to be called when the token is there, or will not come */
  token(): () => void {
    return this.#enter(this.#tokens, { sinceMs: this.#now() })
  }

  /** @returns a function to call when the response is there, or will not come */
  response(): () => void {
    return this.#enter(this.#responses, { sinceMs: this.#now() })
  }

  /** @returns to be called when it is time */
  retry(wait: Omit<RetryWait, 'untilMs'>, waitMs: number): () => void {
    return this.#enter(this.#retries, { ...wait, untilMs: this.#now() + waitMs })
  }

  get waits(): Waits {
    let retry: RetryWait | null = null
    for (const each of this.#retries) if (retry === null || each.untilMs < retry.untilMs) retry = each
    return {
      retry,
      retries: this.#retries.size,
      tokenSinceMs: firstOf(this.#tokens)?.sinceMs ?? null,
      answerSinceMs: firstOf(this.#responses)?.sinceMs ?? null,
    }
  }

  #enter<T>(waiting: Set<T>, wait: T): () => void {
    waiting.add(wait)
    this.#onChange()
    return () => {
      if (waiting.delete(wait)) this.#onChange()
    }
  }
}

function firstOf<T>(waiting: ReadonlySet<T>): T | undefined {
  const [first] = waiting
  return first
}
