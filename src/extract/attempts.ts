import { ExportError, isExportError } from '../core/index.ts'
import { afterError, ErrorResponses, type Outcome } from './outcome.ts'
import type { AttemptParts, Outgoing, ReadResponse } from './outgoing.ts'
import type { Budget, Reservation } from './pace/budget.ts'
import type { ChargedRequest } from './pace/search-ledger.ts'
import { isHtml } from './responses.ts'
import type { Token } from './tokens.ts'
import { isSuccess, ResponseTimeout } from './transport/exchange.ts'
import type { HttpResponse } from './transport/http-client.ts'

const MAX_STALE_TOKENS = 3

/** Makes single attempts: each within the budget, after it has a permit. Reads the limits in the responses. */
export class Attempts {
  readonly #parts: AttemptParts
  readonly #errorResponses: ErrorResponses

  constructor(parts: AttemptParts) {
    this.#parts = parts
    this.#errorResponses = new ErrorResponses(parts)
  }

  /**
   * @param attempt counts from 1 on
   * @throws ExportError when there is no token, or the budget does not allow the request; or the signal's reason
   */
  async make<T>(outgoing: Outgoing, attempt: number, read: ReadResponse<T>): Promise<Outcome<T>> {
    const reservation = await reserve(this.#parts.budget, outgoing)
    try {
      return await this.#makeReserved(outgoing, attempt, read, reservation)
    } finally {
      reservation.release()
    }
  }

  async #makeReserved<T>(
    outgoing: Outgoing,
    attempt: number,
    read: ReadResponse<T>,
    reservation: Reservation,
  ): Promise<Outcome<T>> {
    const { board, counters, http, pace } = this.#parts
    const { metered, sizing, tokens } = outgoing
    for (let tries = 1; ; tries++) {
      const hasToken = board.token()
      const token = await tokens.current().finally(hasToken)
      const permit = await pace[outgoing.tier].permit(outgoing.signal)
      let hasEnded = (_outcome: Readonly<Record<string, string | number>>): number => 0
      let response: HttpResponse | null
      try {
        // The wait for a permit can be long. A token that expires during each wait must not keep the request here.
        if (!tokens.isCurrent(token) && tries <= MAX_STALE_TOKENS) continue
        if (sizing?.isTooLarge() === true) return { next: 'other size', error: tooLarge(outgoing.where) }
        response = await http.send({ ...outgoing, headers: requestHeaders(outgoing, token) }, () => {
          if (!reservation.holds() || !permit.take()) return false
          reservation.spend()
          counters.sent(metered && attempt > 1)
          outgoing.onSent?.()
          hasEnded = this.#begin(outgoing, attempt)
          return true
        })
      } catch (error) {
        hasEnded({ reason: isExportError(error) ? error.what : 'unexpected error' })
        return error instanceof ResponseTimeout && sizing?.timedOut(error.what) === true
          ? { next: 'other size', error }
          : afterError(error)
      } finally {
        permit.end()
      }
      if (response !== null) {
        const ms = hasEnded({ status: response.status })
        const isUsable = isSuccess(response.status) && !isHtml(response)
        this.#readLimits(response, outgoing, reservation.flight, isUsable)
        if (isUsable) return this.#read(response, outgoing, read, ms, reservation.flight)
        response.release()
        return this.#errorResponses.outcome(response, outgoing, token)
      }
      // If the reservation holds, all requests were paused between the permit and the write.
      if (!reservation.holds()) return { next: 'reserve' }
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
  #readLimits(
    { status, headers }: HttpResponse,
    { about, tier, hasCursor }: Outgoing,
    flight: ChargedRequest | null,
    isUsable: boolean,
  ): void {
    const { counters, ledger, log } = this.#parts
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
      flight?.responded(remaining, isSuccess(status) || status === 408 || status >= 500)
      if (!isUsable) flight?.rows(null)
    }
    const batchReached = headers['x-flare-global-searches-batch-reached']
    if (batchReached !== undefined && batchReached !== 'false') {
      log('debug', 'the next request of this search may be charged as another search', { request: about })
    }
    if (tier === 'search')
      counters.responded(isUsable ? 'found' : status === 404 && !hasCursor ? 'not found' : 'unknown')
  }

  /** Has a response read, and releases it. */
  async #read<T>(
    { body, headers, release }: HttpResponse,
    { where }: Outgoing,
    read: ReadResponse<T>,
    ms: number,
    flight: ChargedRequest | null,
  ): Promise<Outcome<T>> {
    let rows: number | null = null
    const hasRows = (count: number): void => {
      rows = count
    }
    try {
      const dateMs = Date.parse(headers.date ?? '')
      if (!Number.isNaN(dateMs)) this.#parts.onDate?.(dateMs)
      return { next: 'done', value: await read(body, where, { ms, hasRows }) }
    } catch (error) {
      return afterError(error)
    } finally {
      flight?.rows(rows)
      release()
    }
  }
}

/** null: the service does not report it, or reports an impossible number (-1 as an unsigned 64-bit integer). */
function searchesLeft(header: string | readonly string[] | undefined): number | null {
  if (typeof header !== 'string' || !/^\d+$/.test(header)) return null
  const left = Number(header)
  return Number.isSafeInteger(left) ? left : null
}

function tooLarge(where: string): ExportError {
  const what = 'Pages of this size do not come in time'
  return new ExportError({ kind: 'transient', what, where, next: 'Run again.' })
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
