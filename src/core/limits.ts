import { figuresOf, mayCost, NOT_MEASURED, type PageCost } from './measures.ts'
import type { Month } from './time.ts'

/**
 * What a run may spend. Each limit is checked before a request is sent and counts what requests in flight may cost. The
 * first request that would pass a limit is not sent. The run then ends with an error of the kind `quota`: its status is
 * `budget`, the exit code 4. Pages in flight are still committed, and the next run goes on from there.
 *
 * | setting of `extract` | counts | over |
 * |---|---|---|
 * | `max_requests` | requests that were sent, retries among them | one run, also if it was interrupted and goes on |
 * | `min_searches_remaining` | searches that are left of the quota, as the service said last | all users of the quota |
 * | `monthly_searches` | searches that were spent, by the service's own count | all runs of a data set, a calendar month (UTC) |
 *
 * Requests for reports and endpoints that say nothing of searches know the first limit alone. What a page costs is known
 * once pages were measured; before that the dearer reading of the documentation counts.
 *
 * Two reports of the service end a run in the same way, whatever the limits are: that no searches are left, and that it
 * wants to be left alone for longer than a run waits.
 */
export type RunLimits = {
  /** null: no limit. */
  readonly maxRequests: number | null
  /** Requests that count against `maxRequests` already; left out: none. */
  readonly sentBefore?: number
  /** null: no limit. */
  readonly minSearchesRemaining: number | null
  /** null: no limit. */
  readonly monthly: MonthlyLimit | null
}

export type MonthlyLimit = {
  readonly searches: number
  /** Spent by earlier runs, by month. */
  readonly before: ReadonlyMap<Month, number>
}

/** Requests that a run may still send. @param sent by this run @returns Infinity where there is no limit */
export function requestsLeft(
  { maxRequests, sentBefore = 0 }: Pick<RunLimits, 'maxRequests' | 'sentBefore'>,
  sent: number,
): number {
  return maxRequests === null ? Number.POSITIVE_INFINITY : maxRequests - sentBefore - sent
}

/** Searches that may be spent of those that are left; less than 0: others have spent what was to be kept. */
export function searchesToSpend(
  { minSearchesRemaining }: Pick<RunLimits, 'minSearchesRemaining'>,
  remaining: number,
): number {
  return remaining - (minSearchesRemaining ?? 0)
}

/** Searches that may still be spent in a month. @param spent by this run in that month */
export function searchesLeftIn(month: Month, { searches, before }: MonthlyLimit, spent: number): number {
  return searches - (before.get(month) ?? 0) - spent
}

/** Runs that it takes to send so many requests. */
export function runsNeeded(requests: number, maxRequests: number): number {
  return Math.ceil(requests / maxRequests)
}

/** Months in which so many searches can be spent: the rest of this one, and as many whole ones as it takes. */
export function monthsNeeded(searches: number, share: number, spentThisMonth: number): number {
  if (searches === 0) return 0
  const later = Math.max(0, searches - Math.max(0, share - spentThisMonth))
  return 1 + Math.ceil(later / share)
}

/** Requests that a run may still send, and which limit that is: the one of the run, or what is left of the quota. */
export type AllowedRequests = { readonly requests: number; readonly by: 'budget' | 'quota' }

/**
 * The narrower of the two, for people; null where there is none.
 * @param service `searchesRemaining` null: the requests cost nothing, or nobody knows what is left
 * @param pageSize rows that pages are requested with
 */
export function allowedRequests(
  limits: Pick<RunLimits, 'maxRequests' | 'sentBefore' | 'minSearchesRemaining'>,
  service: {
    readonly requests: number
    readonly searchesRemaining: number | null
    readonly costs: readonly PageCost[]
  },
  pageSize: number,
): AllowedRequests | null {
  const { requests, searchesRemaining, costs } = service
  const budget = requestsLeft(limits, requests)
  const cost = figuresOf({ ...NOT_MEASURED, costs }).searchesPerRequest || mayCost(costs, pageSize)
  const quota =
    searchesRemaining === null
      ? Number.POSITIVE_INFINITY
      : Math.max(0, searchesToSpend(limits, searchesRemaining)) / cost
  const allowed = Math.min(budget, quota)
  if (!Number.isFinite(allowed)) return null
  return { requests: Math.floor(allowed), by: budget <= quota ? 'budget' : 'quota' }
}
