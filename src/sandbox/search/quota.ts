import type { SearchQuery } from './selection.ts'
import { serviceError } from './service-error.ts'

/** The search of one request, and how many rows its sequence of cursors had before and has after it. */
export type Charge = {
  readonly query: SearchQuery
  /** Every parameter other than `from`. */
  readonly requestKey: string
  readonly cursor: string | null
  readonly before: number
  readonly rows: number
}

export type Quota = {
  /** Searches left this month. */
  remaining(): number
  /** @returns whether the results that are paid for are used up @throws ServiceError 403 when nothing is left */
  charge(charge: Charge): boolean
}

const FREE_MS = 10 * 60_000
// Older ones are long over.
const MOST_REMEMBERED = 10_000

/**
 * The monthly quota. Source: the public documentation: a search retrieves up to 100 credentials, more results are more
 * searches; the same search again, or with other filters, is free within 10 minutes of the first. Whether a page of
 * 10,000 is one search or a hundred it does not say.
 */
export function quota(settings: { quota: number; rowsPerSearch: number; now: () => number }): Quota {
  const { rowsPerSearch, now } = settings
  let remaining = settings.quota
  const paidAt = new Map<string, number>()

  function isPaid(key: string): boolean {
    const at = paidAt.get(key)
    return at !== undefined && now() - at < FREE_MS
  }

  function pay(key: string): void {
    if (isPaid(key)) return
    if (paidAt.size >= MOST_REMEMBERED) paidAt.clear()
    paidAt.set(key, now())
  }

  function searches(rows: number): number {
    return Math.max(1, Math.ceil(rows / rowsPerSearch))
  }

  function costOf(same: string, { query, cursor, before, rows }: Charge): number {
    if (isPaid(same)) return 0
    const free = cursor === null && isPaid(JSON.stringify(query)) ? 1 : 0
    if (rowsPerSearch === 0) return 1 - free
    return cursor === null ? searches(rows) - free : searches(rows) - searches(before)
  }

  return {
    remaining: () => remaining,
    charge(charge) {
      const same = `${charge.requestKey} ${charge.cursor ?? ''}`
      const cost = costOf(same, charge)
      if (cost > 0 && remaining === 0) {
        throw serviceError(403, 'QUOTA_EXCEEDED', 'no global searches left this month')
      }
      remaining = Math.max(0, remaining - cost)
      pay(same)
      if (charge.cursor === null) pay(JSON.stringify(charge.query))
      return rowsPerSearch === 0 || charge.rows >= searches(charge.rows) * rowsPerSearch
    },
  }
}
