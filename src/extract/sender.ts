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
import { ErrorResponses, FailedAttempt, failedAttempt, NotServed } from './failures.ts'
import type { Outgoing, ReadResponse, SenderParts } from './outgoing.ts'
import type { Reservation } from './pace/budget.ts'
import type { SearchRequest } from './pace/search-count.ts'
import { isHtml, isWebPage, ResponseError } from './responses.ts'

// Before a data set has its first page, a web page in place of JSON is another server rather than a brief maintenance.
const RETRIES_OF_A_WEB_PAGE = 2
// A complete answer of another shape comes again more often than not, and each may be charged.
const RETRIES_OF_A_SHAPE = 1
// A page is asked for twice in each size.
const RETRIES_OF_A_SIZE = 1
// There are many sizes.
const LONGEST_WAIT_OF_SIZES_MS = 8_000

const MAX_STALE_TOKENS = 3

/** Sends requests: each is attempted until its response is read, or no other attempt may help. */
export class Sender {
  readonly #parts: SenderParts
  readonly #errorResponses: ErrorResponses
  /** Reasons for retries that were warned of since the service last gave a usable response. */
  readonly #reasons = new Set<string>()

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
        (error === signal.reason ||
          !(error instanceof ExportError) ||
          isExportError(error, 'transient', 'shape'))
      throw isStopped ? interrupted(where) : error
    }
  }

  async #repeat<T>(given: Outgoing, read: ReadResponse<T>): Promise<T> {
    const sending: Sending = { outgoing: given, hasRenewed: false, attempts: 0, failures: 0, startMs: 0 }
    const attempt = (): Promise<T> => {
      sending.attempts++
      sending.startMs = this.#parts.clock.monotonicMs()
      return this.#attempt(sending, read)
    }
    try {
      return await pRetry(attempt, {
        // `#waitToRetry` decides. The wait is on a clock that tests can replace.
        retries: Number.POSITIVE_INFINITY,
        minTimeout: 0,
        maxTimeout: 0,
        shouldRetry: ({ error }) => error instanceof FailedAttempt && this.#waitToRetry(sending, error),
      })
    } catch (error) {
      throw error instanceof FailedAttempt ? exhausted(error, sending) : error
    }
  }

  /**
   * One attempt, within the budget and after it has a permit.
   * @throws FailedAttempt; else what no other attempt can change
   */
  async #attempt<T>(sending: Sending, read: ReadResponse<T>): Promise<T> {
    const { outgoing } = sending
    for (;;) {
      const reservation = await this.#reserve(outgoing)
      try {
        const sent = await this.#exchange(sending, reservation)
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
  async #exchange(sending: Sending, reservation: Reservation): Promise<Sent | null> {
    const { contact, http } = this.#parts
    const { outgoing, attempts } = sending
    const { metered, size } = outgoing
    const { token, permit } = await this.#admitted(outgoing)
    let sentMs = 0
    let hasEnded = (_outcome: Readonly<Record<string, string | number>>): number => 0
    let response: HttpResponse | null
    try {
      response = await http.send({ ...outgoing, headers: requestHeaders(outgoing, token) }, () => {
        if (!reservation.holds() || !permit.take()) return false
        reservation.spend()
        contact.isReached = true
        if (metered && attempts > 1) contact.retries++
        sentMs = this.#parts.clock.monotonicMs()
        hasEnded = this.#begin(outgoing, attempts)
        return true
      })
    } catch (error) {
      hasEnded({ reason: isExportError(error) ? error.what : 'unexpected error' })
      throw failedAttempt(error, size !== null && error instanceof ResponseTimeout ? 'size' : null)
    } finally {
      permit.end()
    }
    if (response === null) return null
    const ms = hasEnded({ status: response.status })
    const isUsable = isSuccess(response.status) && !isHtml(response)
    this.#readLimits(response, outgoing, reservation.flight, isUsable)
    // Of a free request every response tells the time: not every service has what is requested.
    if (!metered && !isUsable) this.#readDate(response)
    if (isUsable) return { response, ms }
    response.release()
    const error = this.#errorResponses.failure(response, outgoing, sentMs)
    const isRejected = response.status === 401 && isExportError(error, 'credentials')
    throw isRejected ? await this.#renewed(sending, token, error) : error
  }

  /**
   * Replaces a rejected token, once for each request.
   * @returns what to throw for another attempt
   * @throws the refusal when there is no other token
   */
  async #renewed(sending: Sending, token: Token, refusal: Error): Promise<Error> {
    const { outgoing } = sending
    if (sending.hasRenewed) throw refusal
    sending.hasRenewed = true
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
    { headers }: HttpResponse,
    { about }: Outgoing,
    flight: SearchRequest | null,
    isUsable: boolean,
  ): void {
    const { searches, log } = this.#parts
    if (flight !== null || searches.isReported === false) {
      const header = headers['x-flare-global-searches-remaining']
      const remaining = searchesLeft(header)
      if (remaining === null && isUsable) {
        // Once a run: from then on nothing is counted.
        if (header !== undefined && searches.isReported === null)
          log('warn', 'the number of searches left cannot be read, so searches are not counted', {
            request: about,
          })
        searches.notReported()
      }
      if (flight !== null) searches.responded(flight, remaining)
    }
    const batchReached = headers['x-flare-global-searches-batch-reached']
    if (batchReached !== undefined && batchReached !== 'false') {
      log('debug', 'the next request of this search may be charged as another search', { request: about })
    }
  }

  /** Has a response read, and releases it. */
  async #read<T>(
    { response, ms }: Sent,
    { where, size, metered }: Outgoing,
    flight: SearchRequest | null,
    read: ReadResponse<T>,
  ): Promise<T> {
    const hasRows = (rows: number): void => {
      if (flight !== null) this.#parts.searches.read(flight, rows)
    }
    try {
      this.#readDate(response)
      const value = await read(response.body, where, { ms, size, hasRows })
      this.#reasons.clear()
      this.#parts.contact.hasSucceeded ||= metered
      return value
    } catch (error) {
      throw failedAttempt(error)
    } finally {
      response.release()
    }
  }

  #readDate({ headers }: HttpResponse): void {
    const dateMs = Date.parse(headers.date ?? '')
    if (!Number.isNaN(dateMs)) this.#parts.onDate?.(dateMs)
  }

  /** Decides what the next attempt requests, and waits for it. @returns false: another one would fail as well */
  async #waitToRetry(sending: Sending, failed: FailedAttempt): Promise<boolean> {
    const { log } = this.#parts
    const { error, minWaitMs, about } = failed
    const most = this.#retriesAfter(failed, sending.outgoing)
    if (++sending.failures > most) {
      const smaller = about === 'size' ? (sending.outgoing.smaller?.() ?? null) : null
      if (smaller === null) return false
      const { size } = sending.outgoing
      const fields = {
        event: 'page_size',
        request: sending.outgoing.about,
        from: size,
        page_size: smaller.size,
      }
      log('warn', 'a page did not come; it is requested with fewer rows', { ...fields, reason: error.what })
      sending.outgoing = { ...sending.outgoing, ...smaller }
      sending.failures = 0
    }
    const { outgoing, attempts } = sending
    outgoing.signal.throwIfAborted()
    const backMs = about === 'size' ? this.#backoffOfSizes(sending) : backoffMs(attempts - 1)
    const waitMs = minWaitMs === null ? 0 : Math.max(backMs, minWaitMs)
    const retry = { number: Math.max(1, sending.failures), of: most, reason: error.what }
    // The wait after a 429 is logged already. All chains meet an outage: it is one warning.
    const isWarning = waitMs > 0 && !this.#reasons.has(retry.reason)
    if (isWarning) this.#reasons.add(retry.reason)
    log(isWarning ? 'warn' : 'debug', 'trying again', {
      event: 'retry',
      request: outgoing.about,
      retry: retry.number,
      of: most,
      wait_ms: Math.round(waitMs),
      reason: error.what,
    })
    await this.#wait(outgoing, waitMs, retry)
    return true
  }

  /** A page that took its time has made its own pause. */
  #backoffOfSizes({ attempts, startMs }: Sending): number {
    const pauseMs = Math.min(LONGEST_WAIT_OF_SIZES_MS, backoffMs(attempts - 1))
    return Math.max(0, pauseMs - (this.#parts.clock.monotonicMs() - startMs))
  }

  /** How many attempts may follow such a failure, in the same size. */
  #retriesAfter({ error, about }: FailedAttempt, outgoing: Outgoing): number {
    const { settings, contact } = this.#parts
    const { smaller, retries = settings.retries } = outgoing
    if (about === 'shape') return Math.min(RETRIES_OF_A_SHAPE, retries)
    if (about === 'size' && smaller !== undefined) return Math.min(RETRIES_OF_A_SIZE, retries)
    return isWebPage(error) && !contact.hasSucceeded ? Math.min(RETRIES_OF_A_WEB_PAGE, retries) : retries
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

/** A request on its way to a response that can be read, in whatever size. */
type Sending = {
  outgoing: Outgoing
  /** Whether its token was rejected and replaced. */
  hasRenewed: boolean
  attempts: number
  /** Failed attempts in its present size. */
  failures: number
  /** When the last attempt began, by the monotonic clock. */
  startMs: number
}

/** A usable response. */
type Sent = {
  readonly response: HttpResponse
  /** The time from the request to the last byte. */
  readonly ms: number
}

/** null: the service does not report it, or reports an impossible number (-1 as an unsigned 64-bit integer). */
function searchesLeft(header: string | undefined): number | null {
  if (header === undefined || !/^\d+$/.test(header)) return null
  const left = Number(header)
  return Number.isSafeInteger(left) ? left : null
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

/** Statuses of a gateway, behind which a page may have too many rows. */
const GATEWAY = new Set([502, 503])

function exhausted({ error, about }: FailedAttempt, { attempts, outgoing: { size } }: Sending): ExportError {
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

function tokenExpired(where: string): ExportError {
  return new ExportError({
    kind: 'transient',
    what: 'The token was rejected and has been renewed',
    where,
    next: 'Run again: the export resumes where it stopped.',
  })
}
