import type { Month } from '../../core/index.ts'

/**
 * What a run may spend. Each limit is checked before a request is sent, and includes the possible cost of requests in
 * flight. The first request that would exceed a limit is not sent. The run then ends with an error of the kind `quota`:
 * its status is `budget`, its exit code 4. Pages in flight are still committed, and the next run resumes from there.
 *
 * | setting of `extract` | counts | over |
 * |---|---|---|
 * | `max_requests` | requests that were sent, retries among them | one run, also if it was interrupted and resumed |
 * | `min_searches_remaining` | searches that are left of the quota, as last reported | all users of the quota |
 * | `monthly_searches` | searches that our own pages cost, by `service.rows_per_search` | all runs of a data set, a calendar month (UTC) |
 *
 * Only the first limit applies to requests for reports, and to endpoints that do not report searches.
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
