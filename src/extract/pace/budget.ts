import { type Clock, ExportError, type Month, monthOf, numberOf } from '../../core/index.ts'
import type { Tier } from './rate-limit.ts'
import type { SearchCount, SearchRequest } from './search-count.ts'

/**
 * What a run may spend. A request that would exceed a limit, together with those in flight, is not sent: the run ends
 * with an error of the kind `quota`, and the next run resumes there.
 */
export type RunLimits = {
  /** Requests that were sent, retries among them, also before an interruption; null: no limit. */
  readonly maxRequests: number | null
  /** Earlier requests that count against `maxRequests`; left out: none. */
  readonly sentBefore?: number
  /** Searches to be left of the quota, as last reported, whoever spends them; null: no limit. */
  readonly minSearchesRemaining: number | null
  /** Searches that our own pages cost in a calendar month (UTC), and those before this run; null: no limit. */
  readonly monthly: { readonly searches: number; readonly before: ReadonlyMap<Month, number> } | null
}

/** Requests that a run may still send. @param sent by this run @returns Infinity where there is no limit */
export function requestsLeft(
  { maxRequests, sentBefore = 0 }: Pick<RunLimits, 'maxRequests' | 'sentBefore'>,
  sent: number,
): number {
  return maxRequests === null ? Number.POSITIVE_INFINITY : maxRequests - sentBefore - sent
}

/** A request that is to be paid from the budget. `signal` ends the wait for what other requests cost. */
type Spending = {
  readonly where: string
  readonly tier: Tier
  readonly size: number | null
  /** Whether the request counts against the budget. */
  readonly metered: boolean
  readonly signal: AbortSignal
}

export type Reservation = {
  /** Receives the limits in the response; null: the request costs no searches. */
  readonly search: SearchRequest | null
  /** @returns false when the limits have changed since: release it, and reserve again */
  holds(): boolean
  /** Called when the request is written. */
  spend(): void
  /** Called when the request has ended: returns what was not spent. */
  release(): void
}

/** The present month (UTC), and what a run had spent before it. */
export type ThisMonth = {
  readonly month: Month
  readonly searchesBefore: number
}

/** Enforces the {@link RunLimits}. The cost of a full page is reserved before any wait, until its response is read. */
export class Budget {
  readonly #limits: RunLimits
  readonly #count: SearchCount
  readonly #clock: Clock
  #requests = 0
  #reserved = 0
  #closedUntil = Number.NEGATIVE_INFINITY
  #month: ThisMonth

  constructor(limits: RunLimits, count: SearchCount, clock: Clock) {
    this.#limits = limits
    this.#count = count
    this.#clock = clock
    this.#month = { month: monthOf(clock.now()), searchesBefore: 0 }
  }

  get requests(): number {
    return this.#requests
  }

  /** Enters the present month, if it has begun since the last call. */
  thisMonth(): ThisMonth {
    const month = monthOf(this.#clock.now())
    if (month > this.#month.month) this.#month = { month, searchesBefore: this.#count.spent ?? 0 }
    return this.#month
  }

  /** The service accepts no requests until then (epoch ms). */
  closeUntil(epochMs: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, epochMs)
  }

  /** @throws ExportError `quota` while the service accepts no requests */
  #checkOpen(where: string): true {
    if (this.#clock.now() >= this.#closedUntil) return true
    const what = `The service accepts no requests before ${new Date(this.#closedUntil).toISOString()}`
    throw quota(where, what, `Run again after that: ${RESUMES}`)
  }

  /** @throws ExportError `quota` when nothing may be sent any more */
  async reserve(spending: Spending): Promise<Reservation> {
    const { where, metered } = spending
    if (metered) this.#checkRequests(where)
    this.#checkOpen(where)
    if (!metered)
      return { search: null, holds: () => this.#checkOpen(where), spend: () => {}, release: () => {} }
    this.#reserved++
    let held = true
    const release = (): void => {
      if (held) this.#reserved--
      held = false
    }
    const search = await this.#searchFor(spending).catch((error: unknown) => {
      release()
      throw error
    })
    return {
      search,
      holds: () => {
        this.#checkOpen(where)
        if (search === null) return true
        return this.#shortageFor(where, search.cost, search.cost, this.#count.inFlight - 1) === null
      },
      spend: () => {
        release()
        if (search !== null) this.#count.write(search)
        this.thisMonth()
        this.#requests++
      },
      release: () => {
        release()
        if (search !== null) this.#count.end(search)
      },
    }
  }

  async #searchFor({ tier, size, signal, where }: Spending): Promise<SearchRequest | null> {
    const count = this.#count
    for (;;) {
      if (tier !== 'search' || size === null || count.isReported === false) return null
      const cost = count.costOf(size)
      const shortage = this.#shortageFor(where, cost, 0, count.inFlight)
      if (shortage === null) return count.begin(cost)
      // Those in flight may cost less than was reserved for them.
      if (count.inFlight === 0) throw shortage
      await count.change(signal)
      this.#checkOpen(where)
    }
  }

  /** null: it may be sent. @param own what is reserved for it already @param others other requests in flight */
  #shortageFor(where: string, cost: number, own: number, others: number): ExportError | null {
    const { isReported, reserved } = this.#count
    if (isReported === false) return null
    // The first response tells whether searches are counted, and how many are left.
    if (isReported === null && others > 0 && this.#isLimited) return notKnown(where)
    return (
      this.#shortageOfRest(where, cost, reserved - own, others) ??
      this.#shortageOfMonth(where, cost, reserved - own)
    )
  }

  get #isLimited(): boolean {
    return this.#limits.minSearchesRemaining !== null || this.#limits.monthly !== null
  }

  #shortageOfRest(where: string, cost: number, others: number, requests: number): ExportError | null {
    const least = this.#limits.minSearchesRemaining
    const { remaining } = this.#count
    if (least === null) return null
    // The first response shows how many are left. Until then, one request at a time is sent.
    if (remaining === null) return requests > 0 ? notKnown(where) : null
    if (remaining - least - others >= cost) return null
    const kept = least === 0 ? '' : `, at least ${least} are to be kept`
    const left = numberOf(remaining, 'search is', 'searches are')
    return quota(
      where,
      `The service reports that ${left} left${kept}, and the next page may cost ${cost}`,
      `${least === 0 ? 'Wait' : 'Lower extract.min_searches_remaining or wait'} for the next quota period, then run again.`,
    )
  }

  #shortageOfMonth(where: string, cost: number, others: number): ExportError | null {
    if (this.#limits.monthly === null) return null
    const { searches, before } = this.#limits.monthly
    const { month, searchesBefore } = this.thisMonth()
    const spent = Math.max(0, (this.#count.spent ?? 0) - searchesBefore)
    const left = searches - (before.get(month) ?? 0) - spent
    if (left - others >= cost) return null
    if (cost > searches) {
      const what = `A page may cost ${numberOf(cost, 'search', 'searches')}, more than the ${searches} of extract.monthly_searches`
      return quota(where, what, 'Lower extract.page_size, or raise extract.monthly_searches, then run again.')
    }
    const what = `Of the ${searches} searches for ${month}, ${numberOf(Math.max(0, left), 'is', 'are')} left, and the next page may cost ${cost}`
    if (left >= cost) return quota(where, what, `Run again: ${RESUMES}`)
    const end = endOfMonth(month)
    const next = `Run again from ${end} on, or raise extract.monthly_searches: ${RESUMES}`
    return quota(where, what, next, Date.parse(end))
  }

  #checkRequests(where: string): void {
    if (requestsLeft(this.#limits, this.#requests + this.#reserved) > 0) return
    const what = `The budget of ${numberOf(this.#limits.maxRequests ?? 0, 'request')} is used up`
    throw quota(where, what, `Run again, or raise extract.max_requests: ${RESUMES}`)
  }
}

const RESUMES = 'the export resumes where it stopped.'

/** @param untilMs when the request may be sent; null: not known */
function quota(where: string, what: string, next: string, untilMs: number | null = null): ExportError {
  return new ExportError({ kind: 'quota', what, where, next, untilMs })
}

function notKnown(where: string): ExportError {
  return quota(where, 'The service has not said how many searches are left', 'Run again.')
}

/** The first instant of the month after this one: `2024-02-01T00:00:00Z`. */
function endOfMonth(month: Month): string {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return `${new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 19)}Z`
}
