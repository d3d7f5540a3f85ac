import type { Month } from '../../core/index.ts'

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
