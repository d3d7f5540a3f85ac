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

/**
 * Holds a run to its {@link RunLimits}. Reserving comes before any other wait, so a used-up budget is known at once. What a page may cost is reserved until its response tells what is left; a page that may not be paid for is
 * not requested, but as long as others are on their way, these may turn out to cost less.
 */
export type Budget = {
  /** @throws ExportError `quota` when nothing may be sent any more */
  reserve(spending: Spending): Promise<Reservation>
  /** The service wants to be left alone until then (epoch ms). */
  closeUntil(epochMs: number): void
  /** @throws ExportError `quota` while the service wants to be left alone */
  checkOpen(where: string): void
  /** Requests sent. */
  readonly requests: number
  /** Those of them that were sent in a calendar month, UTC. */
  requestsIn(month: Month): number
  /** Searches spent in a calendar month, UTC; null: the service does not tell. */
  searchesIn(month: Month): number | null
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

/** What keeps a request back: nothing more is sent, or, as long as others are on their way, their responses are waited for. */
type Lack = {
  readonly what: string
  readonly next: string
  /** When it may be sent; left out: not known. */
  readonly untilMs?: number
}

const NOT_KNOWN: Lack = { what: 'The service has not said how many searches are left', next: 'Run again.' }

/** What other requests may cost, and how many are on their way. */
type Others = { readonly searches: number; readonly requests: number }

export function budget(limits: RunLimits, ledger: SearchLedger, clock: Clock): Budget {
  let requests = 0
  const byMonth = new Map<Month, number>()
  let reserved = 0
  let closedUntil = Number.NEGATIVE_INFINITY
  // What was spent when each month began that this run has seen.
  const spentBefore = new Map<Month, number>([[monthOf(clock.now()), 0]])

  function thisMonth(): Month {
    const month = monthOf(clock.now())
    if (!spentBefore.has(month)) spentBefore.set(month, ledger.spent ?? 0)
    return month
  }

  function searchesIn(month: Month): number | null {
    const { spent } = ledger
    if (spent === null) return null
    thisMonth()
    const from = spentBefore.get(month)
    if (from === undefined) return 0
    const next = [...spentBefore.keys()].sort().find((other) => other > month)
    return (next === undefined ? spent : spentBefore.get(next)!) - from
  }

  function checkOpen(where: string): void {
    if (clock.now() >= closedUntil) return
    throw new ExportError(
      'quota',
      `The service takes no requests before ${new Date(closedUntil).toISOString()}`,
      where,
      'Run again after that: the export goes on from where it stopped.',
    )
  }

  function checkRequests(where: string): void {
    if (requestsLeft(limits, requests + reserved) > 0) return
    throw new ExportError(
      'quota',
      `The budget of ${numberOf(limits.maxRequests ?? 0, 'request')} is used up`,
      where,
      'Run again, or raise extract.max_requests: the export goes on from where it stopped.',
    )
  }

  /** What keeps a request back that may cost so much; null: nothing. */
  function lackOf(cost: number, others: Others): Lack | null {
    if (ledger.tells === false) return null
    return lackOfRest(cost, others) ?? lackOfMonth(cost, others.searches)
  }

  function lackOfRest(cost: number, { searches: others, requests }: Others): Lack | null {
    const least = limits.minSearchesRemaining
    const { remaining } = ledger
    if (least === null) return null
    // The first response tells how many are left; until then one request at a time is risked.
    if (remaining === null) return requests > 0 ? NOT_KNOWN : null
    if (searchesToSpend(limits, remaining) - others >= cost) return null
    const searches = numberOf(remaining, 'search is', 'searches are')
    return {
      what:
        remaining < least
          ? `The service says that ${searches} left, fewer than the ${least} to be kept`
          : `The service says that ${searches} left, of which ${least} are to be kept, and the next page may cost ${cost}`,
      next: 'Lower extract.min_searches_remaining or wait for the next quota period, then run again.',
    }
  }

  function lackOfMonth(cost: number, others: number): Lack | null {
    if (limits.monthly === null) return null
    const { searches } = limits.monthly
    const month = thisMonth()
    const left = searchesLeftIn(month, limits.monthly, searchesIn(month) ?? 0)
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

  async function flightFor({ size, signal, where }: Spending): Promise<Flight | null> {
    if (size === null) return null
    for (;;) {
      if (ledger.tells === false) return null
      const cost = ledger.mayCost(size)
      const lack = lackOf(cost, { searches: ledger.reserved, requests: ledger.inFlight })
      if (lack === null) return ledger.begin(cost)
      if (ledger.inFlight === 0) {
        const options = lack.untilMs === undefined ? {} : { untilMs: lack.untilMs }
        throw new ExportError('quota', lack.what, where, lack.next, options)
      }
      await ledger.change(signal)
      checkOpen(where)
    }
  }

  return {
    async reserve(spending) {
      const { where } = spending
      checkRequests(where)
      checkOpen(where)
      reserved++
      let held = true
      const release = (): void => {
        if (held) reserved--
        held = false
      }
      const flight = await flightFor(spending).catch((error: unknown) => {
        release()
        throw error
      })
      return {
        flight,
        holds() {
          checkOpen(where)
          if (flight === null) return true
          const others = { searches: ledger.reserved - flight.cost, requests: ledger.inFlight - 1 }
          return lackOf(flight.cost, others) === null
        },
        spend() {
          release()
          flight?.write()
          requests++
          const month = thisMonth()
          byMonth.set(month, (byMonth.get(month) ?? 0) + 1)
        },
        release() {
          release()
          flight?.cancel()
        },
      }
    },
    closeUntil(epochMs) {
      closedUntil = Math.max(closedUntil, epochMs)
    },
    checkOpen,
    get requests() {
      return requests
    },
    requestsIn: (month) => byMonth.get(month) ?? 0,
    searchesIn,
  }
}
