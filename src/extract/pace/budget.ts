import {
  type Clock,
  ExportError,
  endOfMonth,
  type Month,
  monthOf,
  numberOf,
  type RunLimits,
  requestsLeft,
  searchesLeftIn,
  searchesToSpend,
} from '../../core/index.ts'
import type { Flight, SearchLedger } from './search-ledger.ts'

/** What a request is about, as far as a budget cares. */
type Spending = {
  readonly where: string
  /** Rows that are requested, where these cost searches; null: it costs none. */
  readonly size: number | null
  /** Ends the wait for responses that tell what others cost. */
  readonly signal: AbortSignal
}

export type Reservation = {
  /** Receives what responses say; null: the request costs no searches. */
  readonly flight: Flight | null
  /** @returns false when the service's word has changed since: give it back, and reserve anew */
  holds(): boolean
  /** The request is written now. */
  spend(): void
  /** Gives back what was not spent. */
  release(): void
}

/** Why a request is not sent. While other requests are in flight, the caller waits for their responses instead. */
type Lack = {
  readonly what: string
  readonly next: string
  /** When it may be sent; left out: not known. */
  readonly untilMs?: number
}

const NOT_KNOWN: Lack = { what: 'The service has not said how many searches are left', next: 'Run again.' }

/** What other requests may cost, and how many are on their way. */
type Others = { readonly searches: number; readonly requests: number }

/**
 * Holds a run to its {@link RunLimits}. Reserving comes before any other wait, so a used-up budget is known at once.
 * What a page may cost is reserved until its response tells what is left. A page that may not be paid for is not
 * requested. As long as others are on their way, these may turn out to cost less.
 */
export class Budget {
  readonly #limits: RunLimits
  readonly #ledger: SearchLedger
  readonly #clock: Clock
  #requests = 0
  readonly #byMonth = new Map<Month, number>()
  #reserved = 0
  #closedUntil = Number.NEGATIVE_INFINITY
  /** What was spent when each month began that this run has seen. */
  readonly #spentBefore: Map<Month, number>

  constructor(limits: RunLimits, ledger: SearchLedger, clock: Clock) {
    this.#limits = limits
    this.#ledger = ledger
    this.#clock = clock
    this.#spentBefore = new Map([[monthOf(clock.now()), 0]])
  }

  /** Requests sent. */
  get requests(): number {
    return this.#requests
  }

  /** Those of them that were sent in a calendar month, UTC. */
  requestsIn(month: Month): number {
    return this.#byMonth.get(month) ?? 0
  }

  /** Searches spent in a calendar month, UTC; null: the service does not tell. */
  searchesIn(month: Month): number | null {
    const { spent } = this.#ledger
    if (spent === null) return null
    this.#thisMonth()
    const from = this.#spentBefore.get(month)
    if (from === undefined) return 0
    const next = [...this.#spentBefore.keys()].sort().find((other) => other > month)
    return (next === undefined ? spent : this.#spentBefore.get(next)!) - from
  }

  /** The service wants to be left alone until then (epoch ms). */
  closeUntil(epochMs: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, epochMs)
  }

  /** @throws ExportError `quota` while the service wants to be left alone */
  checkOpen(where: string): void {
    if (this.#clock.now() >= this.#closedUntil) return
    throw new ExportError(
      'quota',
      `The service takes no requests before ${new Date(this.#closedUntil).toISOString()}`,
      where,
      'Run again after that: the export goes on from where it stopped.',
    )
  }

  /** @throws ExportError `quota` when nothing may be sent any more */
  async reserve(spending: Spending): Promise<Reservation> {
    const { where } = spending
    this.#checkRequests(where)
    this.checkOpen(where)
    this.#reserved++
    let held = true
    const release = (): void => {
      if (held) this.#reserved--
      held = false
    }
    const flight = await this.#flightFor(spending).catch((error: unknown) => {
      release()
      throw error
    })
    return {
      flight,
      holds: () => {
        this.checkOpen(where)
        if (flight === null) return true
        const others = { searches: this.#ledger.reserved - flight.cost, requests: this.#ledger.inFlight - 1 }
        return this.#lackOf(flight.cost, others) === null
      },
      spend: () => {
        release()
        flight?.write()
        this.#requests++
        const month = this.#thisMonth()
        this.#byMonth.set(month, (this.#byMonth.get(month) ?? 0) + 1)
      },
      release: () => {
        release()
        flight?.cancel()
      },
    }
  }

  async #flightFor({ size, signal, where }: Spending): Promise<Flight | null> {
    if (size === null) return null
    for (;;) {
      if (this.#ledger.tells === false) return null
      const cost = this.#ledger.mayCost(size)
      const lack = this.#lackOf(cost, { searches: this.#ledger.reserved, requests: this.#ledger.inFlight })
      if (lack === null) return this.#ledger.begin(cost)
      if (this.#ledger.inFlight === 0) {
        const options = lack.untilMs === undefined ? {} : { untilMs: lack.untilMs }
        throw new ExportError('quota', lack.what, where, lack.next, options)
      }
      await this.#ledger.change(signal)
      this.checkOpen(where)
    }
  }

  /** What keeps a request back that may cost so much; null: nothing. */
  #lackOf(cost: number, others: Others): Lack | null {
    if (this.#ledger.tells === false) return null
    return this.#lackOfRest(cost, others) ?? this.#lackOfMonth(cost, others.searches)
  }

  #lackOfRest(cost: number, { searches: others, requests }: Others): Lack | null {
    const least = this.#limits.minSearchesRemaining
    const { remaining } = this.#ledger
    if (least === null) return null
    // The first response tells how many are left; until then one request at a time is risked.
    if (remaining === null) return requests > 0 ? NOT_KNOWN : null
    if (searchesToSpend(this.#limits, remaining) - others >= cost) return null
    const searches = numberOf(remaining, 'search is', 'searches are')
    return {
      what:
        remaining < least
          ? `The service says that ${searches} left, fewer than the ${least} to be kept`
          : `The service says that ${searches} left, of which ${least} are to be kept, and the next page may cost ${cost}`,
      next: 'Lower extract.min_searches_remaining or wait for the next quota period, then run again.',
    }
  }

  #lackOfMonth(cost: number, others: number): Lack | null {
    if (this.#limits.monthly === null) return null
    const { searches } = this.#limits.monthly
    const month = this.#thisMonth()
    const left = searchesLeftIn(month, this.#limits.monthly, this.searchesIn(month) ?? 0)
    if (left - others >= cost) return null
    return {
      what:
        left <= 0
          ? `The ${searches} searches for ${month} are used up`
          : `Of the ${searches} searches for ${month} ${left} are left, and the next page may cost ${cost}`,
      next: `Run again from ${endOfMonth(month)} on, or raise extract.monthly_searches: the export goes on from where it stopped.`,
      untilMs: Date.parse(endOfMonth(month)),
    }
  }

  #checkRequests(where: string): void {
    if (requestsLeft(this.#limits, this.#requests + this.#reserved) > 0) return
    throw new ExportError(
      'quota',
      `The budget of ${numberOf(this.#limits.maxRequests ?? 0, 'request')} is used up`,
      where,
      'Run again, or raise extract.max_requests: the export goes on from where it stopped.',
    )
  }

  #thisMonth(): Month {
    const month = monthOf(this.#clock.now())
    if (!this.#spentBefore.has(month)) this.#spentBefore.set(month, this.#ledger.spent ?? 0)
    return month
  }
}
