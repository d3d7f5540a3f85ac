import {
  type DecodedPage,
  int64FromJson,
  type Position,
  type RefusedItem,
  type Times,
  type WindowRun,
} from '../../core/index.ts'
import type { ExtractedPage } from '../../extract/index.ts'
import { PageRows, type PartitionRange, type RowChoice, type Slice } from '../../load/index.ts'
import type { ChainRecord } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'

/** A page whose rows and refused items are with the partitions that they belong to. */
export type SplitPage = ExtractedPage & {
  readonly slices: readonly Slice[]
  /** Rows by the index of their window on the chain's way. */
  readonly rows: ReadonlyMap<number, number>
  /** The same of refused items; one without a time that can be read goes with the partition that the chain stands in. */
  readonly refused: ReadonlyMap<number, readonly RefusedItem[]>
}

/**
 * Gives each row to the window that its `imported_at` lies in, whatever order the rows come in. Rows that are not the
 * chain's own are left out.
 * @param folderOf the folder for the rows of a window, by its index on the chain's way
 */
export function splitByWindow(
  extracted: ExtractedPage,
  chain: ChainProgress,
  folderOf: (index: number) => string,
): SplitPage {
  const { page } = extracted
  const rows = new Map<number, number>()
  const runs = runsOf(page, chain.windows)
  for (const { index, from, to } of runs) rows.set(index, (rows.get(index) ?? 0) + to - from)
  const refused = new Map<number, RefusedItem[]>()
  for (const item of page.quarantined) {
    const index = indexOf(item.at, chain)
    const others = refused.get(index)
    if (others === undefined) refused.set(index, [item])
    else others.push(item)
  }
  return { ...extracted, slices: slicesOf(page, runs, chain, folderOf), rows, refused }
}

/** Rows `[from, to)` of a page, all of one window. */
type Run = { readonly index: number; readonly from: number; readonly to: number }

function runsOf({ rows, times }: DecodedPage, windows: WindowRun): readonly Run[] {
  const { range } = windows
  if (range === null || times === null) return rows === 0 ? [] : [{ index: 0, from: 0, to: rows }]
  const runs: Run[] = []
  let from = 0
  while (from < rows) {
    const at = times[from]!
    // Taken over by another chain since the page was requested.
    if (at < range.from || at >= range.until) {
      from++
      continue
    }
    const index = windows.indexOfInstant(at)
    const window = windows.at(index)!
    const to = endOfRun(times, from, window.from, window.until)
    runs.push({ index, from, to })
    from = to
  }
  return runs
}

function endOfRun(times: Times, start: number, from: number, until: number): number {
  let end = start + 1
  while (end < times.length && times[end]! >= from && times[end]! < until) end++
  return end
}

function indexOf(at: number | null, { windows, watermark }: ChainProgress): number {
  const { range } = windows
  const isOwn = at !== null && range !== null && at >= range.from && at < range.until
  return isOwn ? windows.indexOfInstant(at) : Math.min(watermark, windows.count - 1)
}

/** The rows of each folder together: those of windows that share one in the order of the page. */
function slicesOf(
  page: DecodedPage,
  runs: readonly Run[],
  chain: ChainProgress,
  folderOf: (index: number) => string,
): readonly Slice[] {
  if (page.recordBatch === null || runs.length === 0) return []
  const rows = new PageRows(page.recordBatch, page.times)
  const folders = new Map<string, Run[]>()
  const names = new Map<number, string>()
  for (const run of runs) {
    const folder = names.get(run.index) ?? folderOf(run.index)
    names.set(run.index, folder)
    const others = folders.get(folder)
    if (others === undefined) folders.set(folder, [run])
    else others.push(run)
  }
  return [...folders].map(([folder, own]) => ({
    page: rows,
    folder,
    rows: choiceOf(own),
    ranges: own.map(
      ({ index, from, to }): PartitionRange => ({ partition: chain.partitionAt(index).key, rows: to - from }),
    ),
  }))
}

function choiceOf(runs: readonly Run[]): RowChoice {
  const [from, to] = [runs[0]!.from, runs.at(-1)!.to]
  const count = runs.reduce((sum, run) => sum + run.to - run.from, 0)
  if (count === to - from) return { from, to }
  const rows = new Uint32Array(count)
  let at = 0
  for (const run of runs) for (let row = run.from; row < run.to; row++) rows[at++] = row
  return rows
}

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
type PositionChange = { readonly position?: Position | null }

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
