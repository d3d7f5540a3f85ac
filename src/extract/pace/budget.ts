import { type Clock, ExportError, endOfMonth, type Month, monthOf, numberOf } from '../../core/index.ts'

export type BudgetLimits = {
  /** Requests that may be sent; null: no limit. */
  readonly maxRequests: number | null
  /** Nothing is sent once the service says that fewer searches are left; null: never mind. */
  readonly minSearchesRemaining: number | null
  /** What may be sent in a calendar month, what was sent before included; null: no limit. */
  readonly monthly: MonthlyLimit | null
}

export type MonthlyLimit = {
  readonly searches: number
  /** Sent by earlier runs, by month. */
  readonly before: ReadonlyMap<Month, number>
}

/** What a run may still spend. Reserving comes before any wait, so a used-up budget is known at once. */
export type Budget = {
  /** @throws ExportError `quota` when nothing may be sent any more */
  reserve(where: string): Reservation
  /** Tells what the service said is left. */
  learn(searchesRemaining: number): void
  /** The service wants to be left alone until then (epoch ms). */
  closeUntil(epochMs: number): void
  /** @throws ExportError `quota` while the service wants to be left alone */
  checkOpen(where: string): void
  /** Requests sent. */
  readonly requests: number
  /** Those of them that were sent in a calendar month, UTC. */
  requestsIn(month: Month): number
  readonly searchesRemaining: number | null
}

export type Reservation = {
  /** The request is written now. @throws ExportError `quota` when the service's word has changed since */
  spend(): void
  /** Gives back what was not spent. */
  release(): void
}

export function budget(limits: BudgetLimits, clock: Clock): Budget {
  let requests = 0
  const byMonth = new Map<Month, number>()
  let reserved = 0
  let searchesRemaining: number | null = null
  let closedUntil = Number.NEGATIVE_INFINITY

  function checkOpen(where: string): void {
    if (clock.now() >= closedUntil) return
    throw new ExportError(
      'quota',
      `The service takes no requests before ${new Date(closedUntil).toISOString()}`,
      where,
      'Run again after that: the export goes on from where it stopped.',
    )
  }

  function checkSearches(where: string): void {
    const least = limits.minSearchesRemaining
    if (least === null || searchesRemaining === null || searchesRemaining >= least) return
    throw new ExportError(
      'quota',
      `The service says that ${numberOf(searchesRemaining, 'search is', 'searches are')} left, fewer than the ${least} to be kept`,
      where,
      'Lower extract.min_searches_remaining or wait for the next quota period, then run again.',
    )
  }

  function checkMonth(where: string): void {
    if (limits.monthly === null) return
    const { searches, before } = limits.monthly
    const month = monthOf(clock.now())
    const sent = (before.get(month) ?? 0) + (byMonth.get(month) ?? 0)
    if (sent + reserved < searches) return
    throw new ExportError(
      'quota',
      `The ${searches} searches for ${month} are used up`,
      where,
      `Run again from ${endOfMonth(month)} on, or raise extract.monthly_searches: the export goes on from where it stopped.`,
    )
  }

  return {
    reserve(where) {
      if (limits.maxRequests !== null && requests + reserved >= limits.maxRequests) {
        throw new ExportError(
          'quota',
          `The budget of ${numberOf(limits.maxRequests, 'request')} is used up`,
          where,
          'Run again, or raise extract.max_requests: the export goes on from where it stopped.',
        )
      }
      checkMonth(where)
      checkOpen(where)
      checkSearches(where)
      reserved++
      let held = true
      const release = (): void => {
        if (held) reserved--
        held = false
      }
      return {
        spend() {
          checkOpen(where)
          checkSearches(where)
          release()
          requests++
          const month = monthOf(clock.now())
          byMonth.set(month, (byMonth.get(month) ?? 0) + 1)
        },
        release,
      }
    },
    learn(remaining) {
      searchesRemaining = remaining
    },
    closeUntil(epochMs) {
      closedUntil = Math.max(closedUntil, epochMs)
    },
    checkOpen,
    get requests() {
      return requests
    },
    requestsIn: (month) => byMonth.get(month) ?? 0,
    get searchesRemaining() {
      return searchesRemaining
    },
  }
}
