import { getOrInsert, type Window } from '../../../core/index.ts'
import type { ExtractedPage } from '../../../extract/index.ts'
import { PageRows, type PartitionRange, type RowChoice, type Slice } from '../../../load/index.ts'
import type { DecodedPage, RejectedItem, Times } from '../../../rows/index.ts'
import type { Chain, SplitPage } from '../chain.ts'

/** Assigns each row to the window of its `imported_at`, in any order. */
export function splitByWindow(
  extracted: ExtractedPage,
  chain: Chain,
  folderOf: (index: number) => string,
): SplitPage {
  const { page } = extracted
  const rows = new Map<number, number>()
  const runs = runsOf(page, chain)
  for (const { index, from, to } of runs) rows.set(index, (rows.get(index) ?? 0) + to - from)
  const rejected = new Map<number, RejectedItem[]>()
  for (const item of page.quarantined) {
    const index = chain.indexOfItem(item.at)
    if (index !== null) getOrInsert(rejected, index, () => []).push(item)
  }
  const forgotten = new Map<number, number>()
  for (const at of page.forgotten) {
    const index = at === null ? chain.indexOfItem(null) : chain.indexOf(at)
    if (index !== null) forgotten.set(index, (forgotten.get(index) ?? 0) + 1)
  }
  return { ...extracted, slices: slicesOf(page, runs, chain, folderOf), rows, rejected, forgotten }
}

/** Rows `[from, to)` of a page, all of one window. */
type Run = { readonly index: number; readonly from: number; readonly to: number }

function runsOf({ rows, times }: DecodedPage, chain: Chain): readonly Run[] {
  if (times === null) return rows === 0 ? [] : [{ index: 0, from: 0, to: rows }]
  const runs: Run[] = []
  let from = 0
  while (from < rows) {
    const index = chain.indexOf(times[from]!)
    if (index === null) {
      from++
      continue
    }
    const window = chain.windowAt(index)
    const to = window === null ? rows : endOfRun(times, from, window)
    runs.push({ index, from, to })
    from = to
  }
  return runs
}

function endOfRun(times: Times, start: number, { from, until }: Window): number {
  let end = start + 1
  while (end < times.length && times[end]! >= from && times[end]! < until) end++
  return end
}

/** One slice for each folder: rows of windows that share a folder stay in the order of the page. */
function slicesOf(
  page: DecodedPage,
  runs: readonly Run[],
  chain: Chain,
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
