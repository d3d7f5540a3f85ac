import { type Clock, ExportError, type Month, monthOf, numberOf } from '../../core/index.ts'
import type { Tier } from '../endpoints.ts'
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

/** Searches that may be spent of those that are left; less than 0: other users have spent part of the reserve. */
export function searchesToSpend(
  { minSearchesRemaining }: Pick<RunLimits, 'minSearchesRemaining'>,
  remaining: number,
): number {
  return remaining - (minSearchesRemaining ?? 0)
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

/** Why a request is not sent. While other requests are in flight, the caller waits for their responses instead. */
type Shortage = {
  readonly what: string
  readonly next: string
  /** When the request may be sent; undefined: not known. */
  readonly untilMs?: number
}

const NOT_KNOWN: Shortage = {
  what: 'The service has not said how many searches are left',
  next: 'Run again.',
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
    throw new ExportError({
      kind: 'quota',
      what: `The service accepts no requests before ${new Date(this.#closedUntil).toISOString()}`,
      where,
      next: 'Run again after that: the export resumes where it stopped.',
    })
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
        return this.#shortageFor(search.cost, search.cost, this.#count.inFlight - 1) === null
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
      const shortage = this.#shortageFor(cost, 0, count.inFlight)
      if (shortage === null) return count.begin(cost)
      if (count.inFlight === 0) {
        const options = shortage.untilMs === undefined ? {} : { untilMs: shortage.untilMs }
        throw new ExportError({ kind: 'quota', what: shortage.what, where, next: shortage.next, ...options })
      }
      await count.change(signal)
      this.#checkOpen(where)
    }
  }

  /** null: it may be sent. @param own what is reserved for it already @param others other requests in flight */
  #shortageFor(cost: number, own: number, others: number): Shortage | null {
    const { isReported, reserved } = this.#count
    if (isReported === false) return null
    // The first response tells whether searches are counted, and how many are left.
    if (isReported === null && others > 0 && this.#isLimited) return NOT_KNOWN
    return this.#shortageOfRest(cost, reserved - own, others) ?? this.#shortageOfMonth(cost, reserved - own)
  }

  get #isLimited(): boolean {
    return this.#limits.minSearchesRemaining !== null || this.#limits.monthly !== null
  }

  #shortageOfRest(cost: number, others: number, requests: number): Shortage | null {
    const least = this.#limits.minSearchesRemaining
    const { remaining } = this.#count
    if (least === null) return null
    // The first response shows how many are left. Until then, one request at a time is sent.
    if (remaining === null) return requests > 0 ? NOT_KNOWN : null
    if (searchesToSpend(this.#limits, remaining) - others >= cost) return null
    const kept = least === 0 ? '' : `, at least ${least} are to be kept`
    return {
      what: `The service reports that ${numberOf(remaining, 'search is', 'searches are')} left${kept}, and the next page may cost ${cost}`,
      next: `${least === 0 ? 'Wait' : 'Lower extract.min_searches_remaining or wait'} for the next quota period, then run again.`,
    }
  }

  #shortageOfMonth(cost: number, others: number): Shortage | null {
    if (this.#limits.monthly === null) return null
    const { searches, before } = this.#limits.monthly
    const { month, searchesBefore } = this.thisMonth()
    const spent = Math.max(0, (this.#count.spent ?? 0) - searchesBefore)
    const left = searches - (before.get(month) ?? 0) - spent
    if (left - others >= cost) return null
    if (cost > searches) {
      return {
        what: `A page may cost ${numberOf(cost, 'search', 'searches')}, more than the ${searches} of extract.monthly_searches`,
        next: 'Lower extract.page_size, or raise extract.monthly_searches, then run again.',
      }
    }
    const what = `Of the ${searches} searches for ${month}, ${numberOf(Math.max(0, left), 'is', 'are')} left, and the next page may cost ${cost}`
    if (left >= cost) return { what, next: 'Run again: the export resumes where it stopped.' }
    return {
      what,
      next: `Run again from ${endOfMonth(month)} on, or raise extract.monthly_searches: the export resumes where it stopped.`,
      untilMs: Date.parse(endOfMonth(month)),
    }
  }

  #checkRequests(where: string): void {
    if (requestsLeft(this.#limits, this.#requests + this.#reserved) > 0) return
    throw new ExportError({
      kind: 'quota',
      what: `The budget of ${numberOf(this.#limits.maxRequests ?? 0, 'request')} is used up`,
      where,
      next: 'Run again, or raise extract.max_requests: the export resumes where it stopped.',
    })
  }
}

/** The first instant of the month after this one: `2024-02-01T00:00:00Z`. */
function endOfMonth(month: Month): string {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return `${new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 19)}Z`
}
