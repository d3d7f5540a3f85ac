import { ExportError, numberOf } from '../../core/index.ts'
import { backoffMs } from '../../http/index.ts'
import { type FailedAttempt, NotServed } from './failures.ts'
import type { Outgoing, SenderParts } from './outgoing.ts'
import { isWebPage, ResponseError } from './responses.ts'

// Before a data set has its first page, a web page in place of JSON is another server rather than a brief maintenance.
const RETRIES_OF_A_WEB_PAGE = 2
// A complete answer of another shape comes again more often than not, and each may be charged.
const RETRIES_OF_A_SHAPE = 1
// A page is asked for twice in each size.
const RETRIES_OF_A_SIZE = 1
// There are many sizes.
const LONGEST_WAIT_OF_SIZES_MS = 8_000

/** A request on its way to a response that can be read, in whatever size. */
export type Sending = {
  outgoing: Outgoing
  /** Whether its token was rejected and replaced. */
  hasRenewed: boolean
  attempts: number
  /** Failed attempts in its present size. */
  failures: number
}

/** Decides whether a request is attempted again after a failure, when, and in which size. */
export class Retries {
  readonly #parts: SenderParts
  /** Reasons for retries that were warned of since the service last gave a usable response. */
  readonly #reasons = new Set<string>()

  constructor(parts: SenderParts) {
    this.#parts = parts
  }

  succeeded(): void {
    this.#reasons.clear()
  }

  /** Decides what the next attempt requests, and when. @returns null: another one would fail as well */
  waitMs(sending: Sending, failed: FailedAttempt): number | null {
    const { log } = this.#parts
    const { error, minWaitMs, about } = failed
    const most = this.#retriesAfter(failed, sending.outgoing)
    if (++sending.failures > most) {
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

/** Statuses of a gateway, behind which a page may have too many rows. */
const GATEWAY = new Set([502, 503])

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
