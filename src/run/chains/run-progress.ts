import { figuresOf, mayCost, type NamedPipeline, NOT_MEASURED } from '../../core/index.ts'
import type { Service } from '../../extract/index.ts'
import type { AllowedRequests, Progress } from '../setting/index.ts'
import type { RunContext } from './run-context.ts'

/** How far a run is, for its observer. */
export function progressOf(
  { pipeline, tally, survey, sentBefore }: RunContext,
  { counters, waits }: Service,
): Progress {
  return {
    partitionsTotal: survey.total,
    partitionsDone: tally.done,
    partitionsDoneBefore: tally.doneBefore,
    partitionsAdvanced: tally.advanced,
    partitionsFailed: tally.failed,
    rows: tally.rows,
    requests: counters.requests,
    retries: counters.retries,
    quarantined: tally.quarantined,
    searchesSpent: counters.searchesSpent,
    searchesRemaining: counters.searchesRemaining,
    requestsAllowed: allowedOf(pipeline, counters, sentBefore),
    pausedUntilMs: counters.pausedUntilMs,
    waits: { ...waits, diskSinceMs: tally.committingSinceMs },
  }
}

/** The narrower of the budget of the run and what may be taken of the quota. */
function allowedOf(
  { extract: { resource, pageSize, maxRequests, minSearchesRemaining } }: NamedPipeline,
  { requests, searchesRemaining, costs }: Service['counters'],
  sentBefore: number,
): AllowedRequests | null {
  const budget = maxRequests === null ? Number.POSITIVE_INFINITY : maxRequests - sentBefore - requests
  const isFree = resource === 'reports' || searchesRemaining === null
  const quota = isFree
    ? Number.POSITIVE_INFINITY
    : Math.max(0, searchesRemaining - (minSearchesRemaining ?? 0)) /
      (figuresOf({ ...NOT_MEASURED, costs }).searchesPerRequest || mayCost(costs, pageSize))
  const allowed = Math.min(budget, quota)
  return Number.isFinite(allowed)
    ? { requests: Math.floor(allowed), by: budget <= quota ? 'budget' : 'quota' }
    : null
}
