import { ExportError, isExportError } from '../../core/index.ts'
import {
  type HttpResponse,
  interrupted,
  isSuccess,
  ResponseTimeout,
  retry,
  type Token,
} from '../../http/index.ts'
import type { Reservation } from '../pace/budget.ts'
import type { SearchRequest } from '../pace/search-count.ts'
import { exhausted, FailedAttempt, Failures, failedAttempt, type Sending } from './failures.ts'
import type { Outgoing, ReadResponse, SenderParts } from './outgoing.ts'
import { isHtml } from './responses.ts'

/** Sends requests: each is attempted until its response is read, or no other attempt may help. */
export class Sender {
  readonly #parts: SenderParts
  readonly #failures: Failures

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#failures = new Failures(parts)
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
    const { clock, contact } = this.#parts
    const sending: Sending = {
      outgoing: given,
      hasRenewed: false,
      attempts: 0,
      failures: 0,
      limitedSince: null,
    }
    let isRetrying = false
    const attempt = (attempts: number): Promise<T> => {
      sending.attempts = attempts
      return this.#attempt(sending, read)
    }
    const waitMs = (error: unknown): number | null => {
      const ms = error instanceof FailedAttempt ? this.#failures.waitMs(sending, error) : null
      if (ms !== null && !isRetrying) {
        isRetrying = true
        contact.retrying++
      }
      return ms
    }
    try {
      return await retry(attempt, { clock, signal: given.signal, waitMs })
    } catch (error) {
      throw error instanceof FailedAttempt ? exhausted(error, sending) : error
    } finally {
      if (isRetrying) contact.retrying--
    }
  }

  /** One attempt, within the budget and with a permit. @throws FailedAttempt; else what no other attempt can change */
  async #attempt<T>(sending: Sending, read: ReadResponse<T>): Promise<T> {
    const { outgoing } = sending
    for (;;) {
      const reservation = await this.#parts.budget.reserve(outgoing)
      try {
        const sent = await this.#exchange(sending, reservation)
        if (sent !== null) return await this.#read(sent, outgoing, reservation.search, read)
      } finally {
        reservation.release()
      }
    }
  }

  /** @returns a response of 2xx; null: nothing was sent, as the token, limits or a pause have changed since */
  async #exchange(sending: Sending, reservation: Reservation): Promise<Sent | null> {
    const { outgoing } = sending
    const { tokens, tier, signal } = outgoing
    const token = await tokens.current()
    const permit = await this.#parts.pace[tier].permit(signal)
    /** Not before it is written. */
    let sentMs = Number.NaN
    const onWrite = (): boolean => {
      // The wait can be long.
      if (tokens.held() !== token || !reservation.holds() || !permit.take()) return false
      reservation.spend()
      sentMs = this.#written(sending)
      return true
    }
    const onHead = (): void => this.#parts.pace[tier].responded(sentMs)
    const request = { ...outgoing, authorization: token.header }
    const response = await this.#parts.http
      .send(request, onWrite, onHead)
      .catch((error: unknown) => {
        if (!Number.isNaN(sentMs))
          this.#logEnd(sending, sentMs, { reason: isExportError(error) ? error.what : 'unexpected error' })
        throw failedAttempt(error, outgoing.size !== null && error instanceof ResponseTimeout ? 'size' : null)
      })
      .finally(permit.end)
    if (response === null) return null
    const ms = this.#logEnd(sending, sentMs, { status: response.status })
    const isUsable = isSuccess(response.status) && !isHtml(response)
    this.#readLimits(response, outgoing, reservation.search, isUsable)
    this.#readDate(response)
    if (isUsable) return { response, ms }
    const error = this.#failures.ofResponse(response, outgoing, sentMs)
    const isRejected = response.status === 401 && isExportError(error, 'credentials')
    throw isRejected ? await this.#renewed(sending, token, error) : error
  }

  /** @returns when, on the monotonic clock */
  #written({ outgoing, attempts }: Sending): number {
    const { contact, clock } = this.#parts
    contact.isReached = true
    if (outgoing.metered && attempts > 1) contact.retries++
    outgoing.onSent?.()
    return clock.monotonicMs()
  }

  /** @returns how long the request took, ms */
  #logEnd(
    { outgoing, attempts }: Sending,
    sentMs: number,
    outcome: Readonly<Record<string, string | number>>,
  ): number {
    const { method, url, about } = outgoing
    const duration_ms = Math.round(this.#parts.clock.monotonicMs() - sentMs)
    const request = { request: about, method, path: url.pathname, attempt: attempts }
    this.#parts.log('debug', 'request', { event: 'request', ...request, ...outcome, duration_ms })
    return duration_ms
  }

  /** Replaces a rejected token, once. @returns what to throw: the refusal, if there is no other token */
  async #renewed(sending: Sending, token: Token, refusal: Error): Promise<Error> {
    const { tokens, where } = sending.outgoing
    if (sending.hasRenewed || !(await tokens.replace(token))) return refusal
    sending.hasRenewed = true
    return new FailedAttempt(tokenExpired(where), null)
  }

  /** Reads the searches left in the response's headers, whatever its status. */
  #readLimits(
    { headers }: HttpResponse,
    { about }: Outgoing,
    search: SearchRequest | null,
    isUsable: boolean,
  ): void {
    const { searches, log } = this.#parts
    if (search === null) return
    const header = headers['x-flare-global-searches-remaining']
    const remaining = searchesLeft(header)
    if (remaining === null && isUsable) {
      const what = 'the number of searches left cannot be read, so searches are not counted'
      // Once a run: from then on nothing is counted.
      if (header !== undefined && searches.isReported === null) log('warn', what, { request: about })
      searches.notReported()
    }
    searches.responded(search, remaining)
  }

  async #read<T>(
    { response, ms }: Sent,
    { where, metered, tier }: Outgoing,
    search: SearchRequest | null,
    read: ReadResponse<T>,
  ): Promise<T> {
    const hasRows = (rows: number): void => {
      if (search !== null) this.#parts.searches.read(search, rows)
    }
    try {
      const value = await read(response.body, where, { ms, hasRows })
      this.#failures.succeeded(tier)
      this.#parts.contact.hasSucceeded ||= metered
      return value
    } catch (error) {
      throw failedAttempt(error)
    } finally {
      response.release()
    }
  }

  #readDate({ headers }: HttpResponse): void {
    const { contact, clock } = this.#parts
    const dateMs = Date.parse(headers.date ?? '')
    if (!Number.isNaN(dateMs)) contact.clockOffsetMs = dateMs - clock.now()
  }
}

type Sent = {
  readonly response: HttpResponse
  readonly ms: number
}

/** null: the service does not report it, or reports an impossible number (-1 as an unsigned 64-bit integer). */
function searchesLeft(header: string | undefined): number | null {
  if (header === undefined || !/^\d+$/.test(header)) return null
  const left = Number(header)
  return Number.isSafeInteger(left) ? left : null
}

function tokenExpired(where: string): ExportError {
  return new ExportError({
    kind: 'transient',
    what: 'The token was rejected and has been renewed',
    where,
    next: 'Run again: the export resumes where it stopped.',
  })
}
