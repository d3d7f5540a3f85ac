import { type Auth, type Clock, ExportError, isExportError } from '../../core/index.ts'
import { answerError } from '../answers/index.ts'
import type { Token, Tokens } from '../credentials/index.ts'
import type { Budget, RateLimit, Reservation } from '../pace/index.ts'
import { retryAfterMs, TryAgain } from '../pace/index.ts'
import { type HttpAnswer, type HttpClient, isSuccess } from '../transport/index.ts'
import type { WaitBoard } from './waits.ts'

/** Where lines for the log go. Nothing secret is among them. */
export type Log = (
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, string | number | boolean | null>>,
) => void

/** Searches have a pace of their own; everything else shares the other. */
export type Tier = 'search' | 'basic'

/** One for each tier. */
export type Pace = Readonly<Record<Tier, RateLimit>>

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
  /** Ends every wait before it is written. */
  readonly signal: AbortSignal
  /** Breaks it off, written or not; null: nothing does but the run's own signals. */
  readonly giveUp: AbortSignal | null
}

export type SenderParts = {
  readonly http: HttpClient
  readonly pace: Pace
  readonly budget: Budget
  readonly auth: Auth
  readonly clock: Clock
  readonly log: Log
  /** Called with the status of every answer to a search; `hasCursor`: to a request that had one. */
  readonly onStatus: (status: number, hasCursor: boolean) => void
  readonly board: WaitBoard
}

export type Sent =
  | { readonly kind: 'answered'; readonly body: Uint8Array; release(): void }
  /** Status 401: `token` is not, or no longer, accepted. */
  | { readonly kind: 'unauthorised'; readonly token: Token; readonly error: ExportError }

/**
 * Sends one request in its turn and within the budget. `onSent` is called when the request is written.
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

/** Everybody was paused between getting a turn and writing. */
class TurnLost extends Error {}

export function sender({ http, pace, budget, auth, clock, log, onStatus, board }: SenderParts): Send {
  async function sendInTurn(
    outgoing: Outgoing,
    attempt: number,
    tokens: Tokens,
    onWrite: () => void,
  ): Promise<{ answer: HttpAnswer; token: Token }> {
    for (let tries = 1; ; tries++) {
      const hasToken = board.token()
      const token = await tokens.current().finally(hasToken)
      const turn = await pace[outgoing.tier].turn(outgoing.signal)
      let hasEnded = (_facts: Readonly<Record<string, string | number>>): void => {}
      try {
        // Turns can be long in coming; still, a token that never outlives the wait must not hold us for ever.
        if (!tokens.isCurrent(token) && tries <= MAX_STALE_TOKENS) continue
        const answer = await http.send({ ...outgoing, headers: requestHeaders(outgoing, token) }, () => {
          if (!turn.take()) throw new TurnLost()
          onWrite()
          hasEnded = begin(outgoing, attempt)
        })
        hasEnded({ status: answer.status })
        return { answer, token }
      } catch (error) {
        if (error instanceof TurnLost) continue
        hasEnded({ reason: isExportError(error) ? error.what : 'not foreseen' })
        throw asTryAgain(error)
      } finally {
        turn.end()
      }
    }
  }

  /** @returns to be called when the answer is there or will not come, with what there is to tell of it */
  function begin({ method, url, about }: Outgoing, attempt: number) {
    const startMs = clock.monotonicMs()
    const hasAnswer = board.answer()
    return (facts: Readonly<Record<string, string | number>>): void => {
      hasAnswer()
      const duration_ms = Math.round(clock.monotonicMs() - startMs)
      const request = { request: about, method, path: url.pathname, attempt }
      log('debug', 'request', { event: 'request', ...request, ...facts, duration_ms })
    }
  }

  /** Learns what the answer says about limits, whatever its status. */
  function readLimits({ headers }: HttpAnswer, about: string): void {
    const remaining = headers['x-flare-global-searches-remaining']
    if (typeof remaining === 'string' && /^\d+$/.test(remaining)) budget.learn(Number(remaining))
    const batchReached = headers['x-flare-global-searches-batch-reached']
    if (batchReached !== undefined && batchReached !== 'false') {
      log('debug', 'the next request of this search may be charged as another search', { request: about })
    }
  }

  /** What to do about an answer that asks for patience. */
  function patience({ status, headers }: HttpAnswer, about: string, error: ExportError): Error {
    const askedMs = retryAfterMs(headers, clock.now())
    if (askedMs !== null && askedMs > LONGEST_WAIT_MS) {
      budget.closeUntil(clock.now() + askedMs)
      const minutes = Math.ceil(askedMs / 60_000)
      return new ExportError(
        'quota',
        `${error.what}; it asks to wait ${minutes} minutes`,
        error.where,
        'Run again after that: the export goes on from where it stopped.',
      )
    }
    if (status !== 429) return new TryAgain(error, 'backoff', askedMs ?? 0)
    const pauseMs = Math.max(askedMs ?? RATE_LIMITED_MS, LEAST_PAUSE_MS)
    for (const limit of Object.values(pace)) limit.pauseUntil(clock.monotonicMs() + pauseMs)
    log('warn', 'the service answered 429; everybody waits', {
      event: 'wait',
      for: 'pause',
      request: about,
      wait_ms: pauseMs,
    })
    return new TryAgain(error, 'pace')
  }

  return async (outgoing, attempt, tokens, onSent) => {
    const { about, where, hasCursor } = outgoing
    const reservation = reserve(budget, outgoing)
    try {
      const { answer, token } = await sendInTurn(outgoing, attempt, tokens, () => {
        reservation.spend()
        onSent()
      })
      readLimits(answer, about)
      if (outgoing.tier === 'search') onStatus(answer.status, hasCursor)
      if (isSuccess(answer.status)) return { kind: 'answered', body: answer.body, release: answer.release }
      answer.release()
      const error = answerError(answer, auth, { where, hasCursor })
      if (answer.status === 401) return { kind: 'unauthorised', token, error }
      throw error.kind === 'transient' ? patience(answer, about, error) : error
    } finally {
      reservation.release()
    }
  }
}

/** ExportErrors that pass with time ask for another attempt. */
export function asTryAgain(error: unknown): unknown {
  return isExportError(error, 'transient') ? new TryAgain(error) : error
}

function reserve(budget: Budget, { metered, where }: Outgoing): Reservation {
  if (metered) return budget.reserve(where)
  budget.checkOpen(where)
  return { spend: () => budget.checkOpen(where), release: () => {} }
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
