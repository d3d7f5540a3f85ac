import { getOrInsert, type Int64, type WindowRun } from '../../../core/index.ts'
import type { ExtractedPage } from '../../../extract/index.ts'
import { PageRows, type PartitionRange, type RowChoice, type Slice } from '../../../load/index.ts'
import type { DecodedPage, RejectedItem, Times } from '../../../rows/index.ts'
import type { ChainProgress } from '../chain-progress.ts'

/** A page whose rows and rejected items are assigned to their partitions. */
export type SplitPage = ExtractedPage & {
  readonly slices: readonly Slice[]
  /** The number of rows by the index of their window in the chain. */
  readonly rows: ReadonlyMap<number, number>
  /** Rejected items, likewise; an item without a readable time goes to the current partition of the chain. */
  readonly rejected: ReadonlyMap<number, readonly RejectedItem[]>
  /** The number of items that were dropped for forgotten people, likewise. */
  readonly forgotten: ReadonlyMap<number, number>
}

/** Assigns each row to the window of its `imported_at`, in any order. Rows of other chains' windows are left out. */
export function splitByWindow(
  extracted: ExtractedPage,
  chain: ChainProgress,
  folderOf: (index: number) => string,
): SplitPage {
  const { page } = extracted
  const rows = new Map<number, number>()
  const runs = runsOf(page, chain).filter(({ index }) => !chain.isLeftOut(index))
  for (const { index, from, to } of runs) rows.set(index, (rows.get(index) ?? 0) + to - from)
  const rejected = new Map<number, RejectedItem[]>()
  for (const item of page.quarantined) {
    const index = indexOf(item.at, chain)
    if (!chain.isLeftOut(index)) getOrInsert(rejected, index, () => []).push(item)
  }
  const forgotten = new Map<number, number>()
  for (const at of page.forgotten) {
    // Another chain has taken this window over, and counts it.
    if (at !== null && isElsewhere(at, chain.windows)) continue
    const index = indexOf(at, chain)
    if (chain.isLeftOut(index)) continue
    forgotten.set(index, (forgotten.get(index) ?? 0) + 1)
  }
  return { ...extracted, slices: slicesOf(page, runs, chain, folderOf), rows, rejected, forgotten }
}

/** Rows `[from, to)` of a page, all of one window. */
type Run = { readonly index: number; readonly from: number; readonly to: number }

function runsOf({ rows, times }: DecodedPage, { windows, feedWindows }: ChainProgress): readonly Run[] {
  const { range } = windows
  const all = feedWindows ?? windows
  if ((range === null && feedWindows === null) || times === null)
    return rows === 0 ? [] : [{ index: 0, from: 0, to: rows }]
  const runs: Run[] = []
  let from = 0
  while (from < rows) {
    const at = times[from]!
    // Another chain has taken this window over since the page was requested.
    if (isElsewhere(at, windows)) {
      from++
      continue
    }
    const index = all.indexOfInstant(at)
    const window = all.at(index)!
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

function isElsewhere(at: Int64, { range }: WindowRun): boolean {
  return range !== null && (at < range.from || at >= range.until)
}

function indexOf(at: number | null, chain: ChainProgress): number {
  const { windows, watermark, feedWindows } = chain
  if (feedWindows !== null) return at === null ? 0 : feedWindows.indexOfInstant(at)
  const isOwn = at !== null && windows.range !== null && !isElsewhere(at, windows)
  return isOwn ? windows.indexOfInstant(at) : Math.min(watermark, windows.count - 1)
}

/** One slice for each folder: rows of windows that share a folder stay in the order of the page. */
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
    const folder = getOrInsert(names, run.index, () => folderOf(run.index))
    getOrInsert(folders, folder, () => []).push(run)
  }
  return [...folders].map(([folder, own]) => ({
    page: rows,
    folder,
    schema: chain.schema,
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
