import { mayCost, type Reading } from './measures.ts'
import type { Month } from './time.ts'

/**
 * What a run may spend. Each limit is checked before a request is sent, and includes the possible cost of requests in
 * flight. The first request that would exceed a limit is not sent. The run then ends with an error of the kind `quota`:
 * its status is `budget`, its exit code 4. Pages in flight are still committed, and the next run resumes from there.
 *
 * | setting of `extract` | counts | over |
 * |---|---|---|
 * | `max_requests` | requests that were sent, retries among them | one run, also if it was interrupted and resumed |
 * | `min_searches_remaining` | searches that are left of the quota, as last reported | all users of the quota |
 * | `monthly_searches` | searches that were spent, by the service's own count | all runs of a data set, a calendar month (UTC) |
 *
 * Only the first limit applies to requests for reports, and to endpoints that do not report searches. The cost of a
 * page is measured. Until then it is the more expensive reading of the documentation.
 *
 * Two responses of the service end a run in the same way, whatever the limits are: no searches are left, or
 * `Retry-After` is longer than a run waits.
 */
export type RunLimits = {
  /** null: no limit. */
  readonly maxRequests: number | null
  /** Earlier requests that count against `maxRequests`; left out: none. */
  readonly sentBefore?: number
  /** null: no limit. */
  readonly minSearchesRemaining: number | null
  /** null: no limit. */
  readonly monthly: MonthlyLimit | null
}

type MonthlyLimit = {
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

/** Searches that may be spent of those that are left; less than 0: other users have spent part of the reserve. */
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

/** Number of runs that this many requests take. */
export function runsNeeded(requests: number, maxRequests: number): number {
  return Math.ceil(requests / maxRequests)
}

/** Number of months that this many searches take: the rest of this month, then whole months. */
export function monthsNeeded(searches: number, share: number, spentThisMonth: number): number {
  if (searches === 0) return 0
  const later = Math.max(0, searches - Math.max(0, share - spentThisMonth))
  return 1 + Math.ceil(later / share)
}

/** Requests that a run may still send, and the limit that applies: the budget of the run, or the rest of the quota. */
export type AllowedRequests = { readonly requests: number; readonly by: 'budget' | 'quota' }

/**
 * The lower of the two limits, for display; null: no limit.
 * @param service `searchesRemaining` null: the requests cost nothing, or the number is not known
 * @param pageSize rows requested with a page
 */
export function allowedRequests(
  limits: Pick<RunLimits, 'maxRequests' | 'sentBefore' | 'minSearchesRemaining'>,
  service: {
    readonly requests: number
    readonly searchesRemaining: number | null
    readonly reading: Reading | null
  },
  pageSize: number,
): AllowedRequests | null {
  const { requests, searchesRemaining, reading } = service
  const budget = requestsLeft(limits, requests)
  const quota =
    searchesRemaining === null
      ? Number.POSITIVE_INFINITY
      : Math.max(0, searchesToSpend(limits, searchesRemaining)) / mayCost(reading, pageSize)
  const allowed = Math.min(budget, quota)
  if (!Number.isFinite(allowed)) return null
  return { requests: Math.floor(allowed), by: budget <= quota ? 'budget' : 'quota' }
}

/**
 * How long one address of a host is tried before the next one, in milliseconds. Node.js waits 250 ms by itself: a host
 * with two addresses and a slower handshake, of which one has no route, is never reached then.
 */
export const ADDRESS_ATTEMPT_MS = 2500
