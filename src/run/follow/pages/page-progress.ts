import { type Int64Json, int64FromJson, type Order } from '../../../core/index.ts'
import type { DecodedPage, Position } from '../../../rows/index.ts'
import { type FoldedChain, hasEnded } from '../../../state/index.ts'
import type { ChainProgress } from '../chain-progress.ts'
import { completeUntil } from './restart.ts'
import type { SplitPage } from './split-by-window.ts'

/** How a page changes the windows of its chain, all by their index in the chain. */
export type PageProgress = {
  readonly watermark: number
  readonly isLast: boolean
  /** Windows that are done with this page and were not before. */
  readonly finished: readonly number[]
  /** Windows that had ended, done or failed, and are reopened for late rows. */
  readonly reopened: readonly number[]
}

export function progressOf(
  { page, rows, rejected }: SplitPage,
  chain: ChainProgress,
  position: Position | null,
): PageProgress {
  // Of a feed, windows are done with the pass, and rows may come for each of them at any time.
  if (chain.feedWindows !== null) return { watermark: 0, isLast: false, finished: [], reopened: [] }
  const { count } = chain.windows
  const watermark = watermarkAfter(chain, page, position)
  const isLast = page.next === null || watermark >= count
  const isOver = (index: number): boolean => {
    const folded = chain.foldedAt(index)
    return folded !== undefined && hasEnded(folded)
  }
  const late = new Set(
    [...rows.keys(), ...rejected.keys()].filter((index) => index < chain.watermark && isOver(index)),
  )
  const finished: number[] = []
  // Windows with late rows were open until now.
  for (let index = isLast ? 0 : chain.watermark; index < (isLast ? count : watermark); index++) {
    if (!isOver(index) || late.has(index)) finished.push(index)
  }
  return { watermark, isLast, finished, reopened: [...late] }
}

/** The last window is open until the last page; where others took over what follows, until rows were an hour late. */
function watermarkAfter(chain: ChainProgress, page: DecodedPage, position: Position | null): number {
  const { windows, watermark } = chain
  const { count, order } = windows
  if (page.next === null) return count
  if (position === null || position.late > 0) return watermark
  const at = int64FromJson(position.at)
  if (chain.isShortened && windows.watermarkAt(completeUntil(at, order)) === count) return count
  return Math.max(watermark, Math.min(count - 1, windows.watermarkAt(at)))
}

/** The position of a chain after this page; null: it has no item with a time yet. */
export function positionAfter(
  folded: FoldedChain | undefined,
  { span }: Pick<DecodedPage, 'span'>,
  order: Order,
): Position | null {
  const before = folded?.position ?? null
  // A feed has no order to rely on.
  if (span === null || folded?.feed != null) return before
  if (before === null) return { at: span.last, late: span.late }
  const behind = (instant: Int64Json): number => {
    const micros = Number(BigInt(before.at) - BigInt(instant))
    return order === 'asc' ? micros : -micros
  }
  const late = Math.max(before.late, span.late, behind(span.first))
  return { at: behind(span.last) < 0 ? span.last : before.at, late }
}
