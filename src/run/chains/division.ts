import { int64FromJson } from '../../core/index.ts'
import { isInOrder } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'

/**
 * A division pays for itself only where so many full pages are left for each part: what the chain has requested beyond it
 * is dropped, and paid again.
 */
export const MIN_PAGES_A_PART = 20

/** Before that many rows came in order, nothing says that the service keeps an order, nor how dense its rows are. */
const MIN_ROWS_IN_ORDER = 100

/**
 * Where a chain is divided: by the density of its rows so far, in the middle of what is left.
 * @param size rows of a page
 * @returns how many of its windows it keeps; null: all
 */
export function divisionOf(chain: ChainProgress, size: number): number | null {
  const { folded, windows, wanted, currentIndex } = chain
  const { range, order, count } = windows
  if (folded === undefined || folded.position === null || range === null) return null
  if (!isInOrder(folded) || wanted < count || currentIndex + 1 >= count) return null
  const at = Number(int64FromJson(folded.position.at))
  const [begin, end] = order === 'asc' ? [range.from, range.until] : [range.until, range.from]
  let rows = 0
  for (let index = 0; index <= currentIndex; index++) rows += chain.foldedAt(index)?.rows ?? 0
  if (rows < MIN_ROWS_IN_ORDER) return null
  /** The time that so many pages cover. */
  const least = (MIN_PAGES_A_PART * size * Math.abs(at - begin)) / rows
  const near = windows.indexOfInstant((at + end) / 2)
  const imbalance = (keep: number): number => {
    const { from, until } = windows.at(keep)!
    const cut = order === 'asc' ? from : until
    const parts = [Math.abs(cut - at), Math.abs(end - cut)]
    return Math.min(...parts) < least ? Number.POSITIVE_INFINITY : Math.abs(parts[0]! - parts[1]!)
  }
  const cuts = [near, near + 1].filter((keep) => keep > currentIndex && keep < count)
  const [best] = cuts.sort((a, b) => imbalance(a) - imbalance(b))
  return best === undefined || imbalance(best) === Number.POSITIVE_INFINITY || chain.hasItems(best)
    ? null
    : best
}
