import type { Month } from '../core/index.ts'
import type { RunRecord } from './checkpoint-state.ts'

/** What the runs of a data set have sent, by calendar month (UTC). */
export function requestsByMonth(runs: readonly RunRecord[]): ReadonlyMap<Month, number> {
  const sums = new Map<Month, number>()
  const add = (month: Month, requests: number): void => {
    // Of a killed run only committed pages count, and they may be fewer than it sent before a month began.
    sums.set(month, (sums.get(month) ?? 0) + Math.max(0, requests))
  }
  for (const { started_at, months, requests } of runs) {
    let month = started_at.slice(0, 7)
    let before = 0
    for (const next of months) {
      add(month, next.before - before)
      month = next.month
      before = next.before
    }
    add(month, requests - before)
  }
  return sums
}
