import type { Month } from '../core/index.ts'
import type { RunRecord } from './checkpoint-state.ts'

/** What of the quota the runs of a data set have spent, by calendar month (UTC). */
export function searchesByMonth(runs: readonly RunRecord[]): ReadonlyMap<Month, number> {
  const sums = new Map<Month, number>()
  const add = (month: Month, searches: number): void => {
    // Of a killed run only committed pages count, and they may have cost less than it spent before a month began.
    sums.set(month, (sums.get(month) ?? 0) + Math.max(0, searches))
  }
  for (const { started_at, months, searches } of runs) {
    let month = started_at.slice(0, 7)
    let before = 0
    for (const next of months) {
      add(month, next.searches - before)
      month = next.month
      before = next.searches
    }
    add(month, (searches ?? 0) - before)
  }
  return sums
}
