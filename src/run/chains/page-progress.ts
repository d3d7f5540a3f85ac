import { type DecodedPage, int64FromJson, type Position } from '../../core/index.ts'
import type { ChainRecord } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'
import type { SplitPage } from './split-by-window.ts'

/** What a page means for the windows of its chain, all by their index on the chain's way. */
export type PageProgress = {
  /** How many windows nothing more can come for. */
  readonly watermark: number
  readonly isLast: boolean
  /** Windows that are done with this page and were not before. */
  readonly finished: readonly number[]
  /** Windows that were done, and are open again for rows that came late. */
  readonly reopened: readonly number[]
}

/** How far a chain has come; null: its items are not in order of `imported_at`; absent: as before. */
export type PositionChange = { readonly position?: Position | null }

export function progressOf(
  { page, rows, refused }: SplitPage,
  chain: ChainProgress,
  position: PositionChange,
): PageProgress {
  const { count } = chain.windows
  const watermark = watermarkAfter(chain, page, position)
  const isLast = page.next === null || watermark >= count
  const isDone = (index: number): boolean => chain.recordAt(index)?.state === 'done'
  const touched = new Set([...rows.keys(), ...refused.keys()])
  const reopened = new Set([...touched].filter((index) => index < chain.watermark && isDone(index)))
  const finished: number[] = []
  // Whatever came late was open until now.
  for (let index = isLast ? 0 : chain.watermark; index < (isLast ? count : watermark); index++) {
    if (!isDone(index) || reopened.has(index)) finished.push(index)
  }
  return { watermark, isLast, finished, reopened: [...reopened] }
}

/** How many windows nothing more can come for. The last one is open until the service says that there is no more. */
function watermarkAfter(chain: ChainProgress, page: DecodedPage, { position }: PositionChange): number {
  const { windows, watermark, record } = chain
  if (page.next === null) return windows.count
  const isInOrder = (record?.inOrder ?? true) && position !== null
  const at = position ?? record?.position ?? null
  if (!isInOrder || at === null) return watermark
  // A window that another chain has taken over need not be waited for.
  const most = chain.isShortened ? windows.count : windows.count - 1
  return Math.max(watermark, Math.min(most, windows.watermarkAt(int64FromJson(at.at))))
}

// Beyond this many rows with one and the same time the resume position is not kept.
const MAX_POSITION_IDS = 1000

/** How far the chain has come with this page: null once items were not in order of `imported_at`. */
export function positionAfter(
  record: ChainRecord | undefined,
  page: DecodedPage,
  order: 'asc' | 'desc',
): PositionChange {
  if (page.items === page.repeated || page.next === null) return {}
  if (record?.inOrder === false) return {}
  if (page.span === null) return { position: null }
  const { first, last, lastIds } = page.span
  const before = record?.position ?? null
  const here = { position: { at: last, ids: lastIds === null ? null : [...lastIds] } }
  if (before === null) return here
  const [start, end] = [int64FromJson(first), int64FromJson(before.at)]
  if (order === 'asc' ? start < end : start > end) return { position: null }
  if (last !== before.at) return here
  if (before.ids === null || lastIds === null) return { position: { at: last, ids: null } }
  const ids = [...new Set([...before.ids, ...lastIds])]
  return { position: { at: last, ids: ids.length > MAX_POSITION_IDS ? null : ids } }
}
