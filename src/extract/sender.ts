import pRetry from 'p-retry'
import { ExportError, isExportError, numberOf } from '../core/index.ts'
import {
  backoffMs,
  type HttpResponse,
  interrupted,
  isSuccess,
  ResponseTimeout,
  type Token,
} from '../http/index.ts'
import { ErrorResponses, FailedAttempt, failedAttempt } from './failures.ts'
import type { Outgoing, ReadResponse, SenderParts } from './outgoing.ts'
import type { Reservation } from './pace/budget.ts'
import { PageTooLarge } from './pace/page-sizes.ts'
import type { ChargedRequest } from './pace/search-ledger.ts'
import { isHtml, isWebPage } from './responses.ts'

// A web page in place of JSON is another server more often than a brief maintenance.
const RETRIES_OF_A_WEB_PAGE = 2

const MAX_STALE_TOKENS = 3

/** Sends requests: each is attempted until its response is read, or no other attempt may help. */
export class Sender {
  readonly #parts: SenderParts
  readonly #errorResponses: ErrorResponses
  /** Reasons for retries that were warned of since the service last gave a usable response. */
  readonly #reasons = new Set<string>()
  /** Requests whose token was rejected and replaced. */
  readonly #hasRenewed = new WeakSet<Outgoing>()

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#errorResponses = new ErrorResponses(parts)
  }

  /** @throws ExportError as `Service.request` does. Every kind of stop becomes the same error */
  async send<T>(outgoing: Outgoing, read: ReadResponse<T>): Promise<T> {
    const { signal, where } = outgoing
    try {
      return await this.#repeat(outgoing, read)
    } catch (error) {
      // After a stop there is no time for a retry, which may have succeeded.
      const isStopped =
        signal.aborted &&
        (error === signal.reason || !(error instanceof ExportError) || error.kind === 'transient')
      throw isStopped ? interrupted(where) : error
    }
  }

  async #repeat<T>(outgoing: Outgoing, read: ReadResponse<T>): Promise<T> {
    let attempts = 0
    const attempt = (number: number): Promise<T> => {
      attempts = number
      return this.#attempt(outgoing, number, read)
    }
    try {
      return await pRetry(attempt, {
        retries: this.#parts.settings.retries,
        // The wait is on a clock that tests can replace.
        minTimeout: 0,
        maxTimeout: 0,
        shouldRetry: ({ error, attemptNumber }) =>
          error instanceof FailedAttempt && this.#waitToRetry(outgoing, attemptNumber, error),
      })
    } catch (error) {
      throw error instanceof FailedAttempt ? exhausted(error.error, attempts) : error
    }
  }

  /**
   * One attempt, within the budget and after it has a permit.
   * @throws FailedAttempt, PageTooLarge; else what no other attempt can change
   */
  async #attempt<T>(outgoing: Outgoing, number: number, read: ReadResponse<T>): Promise<T> {
    for (;;) {
      const reservation = await this.#reserve(outgoing)
      try {
        const sent = await this.#exchange(outgoing, number, reservation)
        if (sent !== null) return await this.#read(sent, outgoing, reservation.flight, read)
      } finally {
        reservation.release()
      }
    }
  }

  async #reserve(outgoing: Outgoing): Promise<Reservation> {
    const { budget } = this.#parts
    const { metered, where } = outgoing
    if (metered) return budget.reserve(outgoing)
    budget.checkOpen(where)
    const holds = (): boolean => {
      budget.checkOpen(where)
      return true
    }
    return { flight: null, holds, spend: () => {}, release: () => {} }
  }

  /** A permit, and a token that was valid when it came. */
  async #admitted(outgoing: Outgoing) {
    const { tokens, tier, signal } = outgoing
    for (let stale = 0; ; stale++) {
      const token = tokens.held() ?? (await this.#obtain(outgoing))
      const permit = await this.#parts.pace[tier].permit(signal)
      // The wait can be long. A token that expires during each wait must not keep the request here.
      if (tokens.held() === token || stale === MAX_STALE_TOKENS) return { token, permit }
      permit.end()
    }
  }

  /** @returns a response of 2xx; null: nothing was sent, as limits or a pause have come since */
  async #exchange(outgoing: Outgoing, number: number, reservation: Reservation): Promise<Sent | null> {
    const { contact, http } = this.#parts
    const { metered, sizing, where } = outgoing
    const { token, permit } = await this.#admitted(outgoing)
    let hasEnded = (_outcome: Readonly<Record<string, string | number>>): number => 0
    let response: HttpResponse | null
    try {
      if (sizing?.isTooLarge() === true) throw tooLarge(where)
      response = await http.send({ ...outgoing, headers: requestHeaders(outgoing, token) }, () => {
        if (!reservation.holds() || !permit.take()) return false
        reservation.spend()
        contact.isReached = true
        if (metered && number > 1) contact.retries++
        hasEnded = this.#begin(outgoing, number)
        return true
      })
    } catch (error) {
      hasEnded({ reason: isExportError(error) ? error.what : 'unexpected error' })
      const isOfSize = error instanceof ResponseTimeout && sizing?.timedOut(error.what) === true
      throw isOfSize ? new PageTooLarge(error) : failedAttempt(error)
    } finally {
      permit.end()
    }
    if (response === null) return null
    const ms = hasEnded({ status: response.status })
    const isUsable = isSuccess(response.status) && !isHtml(response)
    this.#readLimits(response, outgoing, reservation.flight, isUsable)
    if (isUsable) return { response, ms }
    response.release()
    const error = this.#errorResponses.failure(response, outgoing)
    throw response.status === 401 ? await this.#renewed(outgoing, token, error) : error
  }

  /**
   * Replaces a rejected token, once for each request.
   * @returns what to throw for another attempt
   * @throws the refusal when there is no other token
   */
  async #renewed(outgoing: Outgoing, token: Token, refusal: Error): Promise<Error> {
    if (this.#hasRenewed.has(outgoing)) throw refusal
    this.#hasRenewed.add(outgoing)
    await outgoing.tokens.replace(token, refusal)
    return new FailedAttempt(tokenExpired(outgoing.where), null)
  }

  async #obtain({ tokens }: Outgoing): Promise<Token> {
    const isOver = this.#parts.board.begin('token')
    return tokens.current().finally(isOver)
  }

  /** @returns a function to call with the outcome when the response is there or will not come */
  #begin({ method, url, about, onSent }: Outgoing, attempt: number) {
    const { board, clock, log } = this.#parts
    const startMs = clock.monotonicMs()
    onSent?.()
    const hasResponse = board.begin('response')
    return (outcome: Readonly<Record<string, string | number>>): number => {
      hasResponse()
      const duration_ms = Math.round(clock.monotonicMs() - startMs)
      const request = { request: about, method, path: url.pathname, attempt }
      log('debug', 'request', { event: 'request', ...request, ...outcome, duration_ms })
      return duration_ms
    }
  }

  /** Reads the limits in the response's headers, whatever its status. */
  #readLimits(
    { status, headers }: HttpResponse,
    { about, tier, hasCursor }: Outgoing,
    flight: ChargedRequest | null,
    isUsable: boolean,
  ): void {
    const { contact, ledger, log } = this.#parts
    if (flight !== null || ledger.isReported === false) {
      const header = headers['x-flare-global-searches-remaining']
      const remaining = searchesLeft(header)
      if (remaining === null && isUsable) {
        // Once a run: from then on nothing is counted.
        if (header !== undefined && ledger.isReported === null)
          log('warn', 'the number of searches left cannot be read, so searches are not counted', {
            request: about,
          })
        ledger.notReported()
      }
      const mayBeCharged = isSuccess(status) || status === 408 || status >= 500
      if (flight !== null) ledger.responded(flight, remaining, mayBeCharged)
    }
    const batchReached = headers['x-flare-global-searches-batch-reached']
    if (batchReached !== undefined && batchReached !== 'false') {
      log('debug', 'the next request of this search may be charged as another search', { request: about })
    }
    if (tier !== 'search') return
    contact.isFound ||= isUsable
    if (contact.isFound) contact.notFound = 0
    else if (status === 404 && !hasCursor) contact.notFound++
  }

  /** Has a response read, and releases it. */
  async #read<T>(
    { response: { body, headers, release }, ms }: Sent,
    { where }: Outgoing,
    flight: ChargedRequest | null,
    read: ReadResponse<T>,
  ): Promise<T> {
    const hasRows = (rows: number): void => {
      if (flight !== null) this.#parts.ledger.read(flight, rows)
    }
    try {
      const dateMs = Date.parse(headers.date ?? '')
      if (!Number.isNaN(dateMs)) this.#parts.onDate?.(dateMs)
      const value = await read(body, where, { ms, hasRows })
      this.#reasons.clear()
      return value
    } catch (error) {
      throw failedAttempt(error)
    } finally {
      release()
    }
  }

  /** @param attempt the number of the failed attempt. @returns false: another one would fail as well */
  async #waitToRetry(
    outgoing: Outgoing,
    attempt: number,
    { error, minWaitMs }: FailedAttempt,
  ): Promise<boolean> {
    const { log } = this.#parts
    const { retries } = this.#parts.settings
    const most = isWebPage(error) ? Math.min(RETRIES_OF_A_WEB_PAGE, retries) : retries
    if (attempt > most) return false
    outgoing.signal.throwIfAborted()
    const waitMs = minWaitMs === null ? 0 : Math.max(backoffMs(attempt - 1), minWaitMs)
    const retry = { number: attempt, of: most, reason: error.what }
    // The wait after a 429 is logged already. All chains meet an outage: it is one warning.
    const isWarning = waitMs > 0 && !this.#reasons.has(retry.reason)
    if (isWarning) this.#reasons.add(retry.reason)
    log(isWarning ? 'warn' : 'debug', 'trying again', {
      event: 'retry',
      request: outgoing.about,
      retry: attempt,
      of: most,
      wait_ms: Math.round(waitMs),
      reason: error.what,
    })
    await this.#wait(outgoing, waitMs, retry)
    return true
  }

  async #wait(
    { signal }: Outgoing,
    waitMs: number,
    retry: { readonly number: number; readonly of: number; readonly reason: string },
  ): Promise<void> {
    const isOver = this.#parts.board.retry(retry, waitMs)
    try {
      if (waitMs > 0) await this.#parts.clock.sleep(waitMs, signal)
    } finally {
      isOver()
    }
  }
}

/** A usable response. */
type Sent = {
  readonly response: HttpResponse
  /** The time from the request to the last byte. */
  readonly ms: number
}

/** null: the service does not report it, or reports an impossible number (-1 as an unsigned 64-bit integer). */
function searchesLeft(header: string | readonly string[] | undefined): number | null {
  if (typeof header !== 'string' || !/^\d+$/.test(header)) return null
  const left = Number(header)
  return Number.isSafeInteger(left) ? left : null
}

function tooLarge(where: string): PageTooLarge {
  const what = 'Pages of this size do not come in time'
  return new PageTooLarge(new ExportError({ kind: 'transient', what, where, next: 'Run again.' }))
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

function exhausted(error: ExportError, attempts: number): ExportError {
  const { kind, where, next } = error
  const what = `${error.what}; failed after ${numberOf(attempts, 'attempt')}`
  return new ExportError({ kind, what, where, next, cause: error })
}

function tokenExpired(where: string): ExportError {
  return new ExportError({
    kind: 'transient',
    what: 'The token was rejected and has been renewed',
    where,
    next: 'Run again: the export resumes where it stopped.',
  })
}
