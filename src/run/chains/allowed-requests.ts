import { searchesOf } from '../../core/index.ts'
import { type RunLimits, requestsLeft, searchesToSpend } from '../../extract/index.ts'

/** Requests that a run may still send, and the limit that applies: the budget of the run, or the rest of the quota. */
export type AllowedRequests = { readonly requests: number; readonly by: 'budget' | 'quota' }

/** The lower limit, for display; null: none. `searchesRemaining` null: requests cost nothing, or it is not known. */
export function allowedRequests(
  limits: Pick<RunLimits, 'maxRequests' | 'sentBefore' | 'minSearchesRemaining'>,
  service: { readonly requests: number; readonly searchesRemaining: number | null },
  page: { readonly size: number; readonly rowsPerSearch: number | null },
): AllowedRequests | null {
  const { requests, searchesRemaining } = service
  const budget = requestsLeft(limits, requests)
  const quota =
    searchesRemaining === null
      ? Number.POSITIVE_INFINITY
      : Math.max(0, searchesToSpend(limits, searchesRemaining)) / searchesOf(page.size, page.rowsPerSearch)
  const allowed = Math.min(budget, quota)
  if (!Number.isFinite(allowed)) return null
  return { requests: Math.floor(allowed), by: budget <= quota ? 'budget' : 'quota' }
}
