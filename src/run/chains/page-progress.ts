import { int64FromJson } from '../../core/index.ts'
import type { DecodedPage, Position } from '../../rows/index.ts'
import { type FoldedChain, hasEnded } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'
import type { SplitPage } from './split-by-window.ts'

/** How a page changes the windows of its chain, all by their index in the chain. */
export type PageProgress = {
  /** The number of windows that can get no more rows. */
  readonly watermark: number
  readonly isLast: boolean
  /** Windows that are done with this page and were not before. */
  readonly finished: readonly number[]
  /** Windows that had ended, done or failed, and are reopened for late rows. */
  readonly reopened: readonly number[]
}

/** The resume position of a chain; null: its items are not in order of `imported_at`; absent: unchanged. */
type PositionChange = { readonly position?: Position | null }

export function progressOf(
  { page, rows, refused }: SplitPage,
  chain: ChainProgress,
  position: PositionChange,
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
    [...rows.keys(), ...refused.keys()].filter((index) => index < chain.watermark && isOver(index)),
  )
  const finished: number[] = []
  // Windows with late rows were open until now.
  for (let index = isLast ? 0 : chain.watermark; index < (isLast ? count : watermark); index++) {
    if (!isOver(index) || late.has(index)) finished.push(index)
  }
  return { watermark, isLast, finished, reopened: [...late] }
}

/** The number of windows that can get no more rows. The last window is open until the chain's last page. */
function watermarkAfter(chain: ChainProgress, page: DecodedPage, { position }: PositionChange): number {
  const { windows, watermark, folded } = chain
  if (page.next === null) return windows.count
  const isInOrder = (folded?.inOrder ?? true) && position !== null
  const at = position ?? folded?.position ?? null
  if (!isInOrder || at === null) return watermark
  // A window that another chain has taken over does not count.
  const most = chain.isShortened ? windows.count : windows.count - 1
  return Math.max(watermark, Math.min(most, windows.watermarkAt(int64FromJson(at.at))))
}

// With more rows than this of the same time, the resume position is not kept.
const MAX_POSITION_IDS = 1000

/** The resume position after this page; null after items were not in order of `imported_at`. */
export function positionAfter(
  folded: FoldedChain | undefined,
  page: DecodedPage,
  order: 'asc' | 'desc',
): PositionChange {
  // A feed takes no filter, so nothing but a cursor resumes it.
  if (folded?.feed != null) return {}
  if (page.items === page.repeated || page.next === null) return {}
  if (folded?.inOrder === false) return {}
  if (page.span === null) return { position: null }
  const { first, last, lastIds } = page.span
  const before = folded?.position ?? null
  const here = { position: { at: last, ids: lastIds === null ? null : [...lastIds] } }
  if (before === null) return here
  const [start, end] = [int64FromJson(first), int64FromJson(before.at)]
  if (order === 'asc' ? start < end : start > end) return { position: null }
  if (last !== before.at) return here
  if (before.ids === null || lastIds === null) return { position: { at: last, ids: null } }
  const ids = [...new Set([...before.ids, ...lastIds])]
  return { position: { at: last, ids: ids.length > MAX_POSITION_IDS ? null : ids } }
}
