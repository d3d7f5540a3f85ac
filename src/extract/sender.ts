import pRetry from 'p-retry'
import { ExportError, numberOf } from '../core/index.ts'
import { Attempts } from './attempts.ts'
import type { Outcome } from './outcome.ts'
import type { AttemptParts, Outgoing, ReadResponse } from './outgoing.ts'
import { PageTooLarge } from './pace/page-sizes.ts'
import { isWebPage } from './responses.ts'
import { interrupted } from './transport/exchange.ts'

// A web page in place of JSON is another server more often than a brief maintenance.
const RETRIES_OF_A_WEB_PAGE = 2

const BASE_MS = 500
const CAP_MS = 60_000

/** What p-retry counts. */
class FailedAttempt extends Error {
  constructor(
    readonly error: ExportError,
    /** The least backoff; null: the rate limiter's wait is enough. */
    readonly minWaitMs: number | null,
  ) {
    super(error.message)
  }
}

/** Sends requests: each is attempted until its response is read, or no other attempt may help. */
export class Sender {
  readonly #parts: AttemptParts
  readonly #attempts: Attempts
  /** Reasons for retries that were warned of since the service last gave a usable response. */
  readonly #reasons = new Set<string>()

  constructor(parts: AttemptParts) {
    this.#parts = parts
    this.#attempts = new Attempts(parts)
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

  /** Makes attempts; the outcome of each decides what comes next. The token is renewed once. */
  async #repeat<T>(outgoing: Outgoing, read: ReadResponse<T>): Promise<T> {
    let isRenewed = false
    let attempts = 0
    const attempt = async (number: number): Promise<T> => {
      attempts = number
      for (;;) {
        const outcome: Outcome<T> = await this.#attempts.make(outgoing, number, read)
        switch (outcome.next) {
          case 'done':
            this.#reasons.clear()
            return outcome.value
          case 'fail':
            throw outcome.error
          case 'reserve':
            continue
          case 'retry':
            throw new FailedAttempt(outcome.error, outcome.minWaitMs)
          case 'renew token':
            if (isRenewed) throw outcome.error
            isRenewed = true
            await outgoing.tokens.replace(outcome.token, outcome.error)
            throw new FailedAttempt(tokenExpired(outgoing.where), null)
          case 'other size':
            throw new PageTooLarge(outcome.error)
          default:
            throw outcome satisfies never
        }
      }
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

function exhausted(error: ExportError, attempts: number): ExportError {
  const { kind, where, next } = error
  const what = `${error.what}; failed after ${numberOf(attempts, 'attempt')}`
  return new ExportError({ kind, what, where, next, cause: error })
}

/** Doubles from half a second to a minute; between half of it and all of it, so that clients drift apart. */
function backoffMs(retriesBefore: number): number {
  const ceilingMs = Math.min(CAP_MS, BASE_MS * 2 ** retriesBefore)
  return ceilingMs * (0.5 + Math.random() / 2)
}

function tokenExpired(where: string): ExportError {
  return new ExportError({
    kind: 'transient',
    what: 'The token was rejected and has been renewed',
    where,
    next: 'Run again: the export resumes where it stopped.',
  })
}
