import type { DecodedPage, RefusedItem, RowChoice, Times, WindowRun } from '../../core/index.ts'
import type { ExtractedPage } from '../../extract/index.ts'
import { PageRows, type Piece, type Stretch } from '../../load/index.ts'
import type { ChainWork } from './chain-work.ts'

/** A page whose rows and refused items are with the partitions that they belong to. */
export type SplitPage = ExtractedPage & {
  readonly pieces: readonly Piece[]
  /** Rows by the place of their window on the chain's way. */
  readonly rows: ReadonlyMap<number, number>
  /** The same of refused items; one without a time that can be read goes with the partition that the chain stands in. */
  readonly refused: ReadonlyMap<number, readonly RefusedItem[]>
}

/**
 * Gives each row to the window that its `imported_at` lies in, whatever order the rows come in. What is not the chain's
 * own is left out.
 * @param folderOf where the rows of a window go, by its place on the chain's way
 */
export function splitByWindow(
  chain: ChainWork,
  folderOf: (place: number) => string,
): (pages: AsyncIterable<ExtractedPage>) => AsyncGenerator<SplitPage> {
  return async function* (pages) {
    for await (const extracted of pages) yield split(extracted, chain, folderOf)
  }
}

function split(extracted: ExtractedPage, chain: ChainWork, folderOf: (place: number) => string): SplitPage {
  const { page } = extracted
  const rows = new Map<number, number>()
  const runs = runsOf(page, chain.windows)
  for (const { place, from, to } of runs) rows.set(place, (rows.get(place) ?? 0) + to - from)
  const refused = new Map<number, RefusedItem[]>()
  for (const item of page.quarantined) {
    const place = placeOf(item.at, chain)
    const others = refused.get(place)
    if (others === undefined) refused.set(place, [item])
    else others.push(item)
  }
  return { ...extracted, pieces: piecesOf(page, runs, chain, folderOf), rows, refused }
}

/** Rows `[from, to)` of a page, all of one window. */
type Run = { readonly place: number; readonly from: number; readonly to: number }

function runsOf({ rows, times }: DecodedPage, windows: WindowRun): readonly Run[] {
  const { range } = windows
  if (range === null || times === null) return rows === 0 ? [] : [{ place: 0, from: 0, to: rows }]
  const runs: Run[] = []
  let from = 0
  while (from < rows) {
    const at = times[from]!
    // Taken over by another chain since the page was asked for.
    if (at < range.from || at >= range.until) {
      from++
      continue
    }
    const place = windows.placeOf(at)
    const window = windows.at(place)!
    const to = endOfRun(times, from, window.from, window.until)
    runs.push({ place, from, to })
    from = to
  }
  return runs
}

function endOfRun(times: Times, start: number, from: number, until: number): number {
  let end = start + 1
  while (end < times.length && times[end]! >= from && times[end]! < until) end++
  return end
}

function placeOf(at: number | null, { windows, passed }: ChainWork): number {
  const { range } = windows
  const isOwn = at !== null && range !== null && at >= range.from && at < range.until
  return isOwn ? windows.placeOf(at) : Math.min(passed, windows.count - 1)
}

/** The rows of each folder together: those of windows that share one in the order of the page. */
function piecesOf(
  page: DecodedPage,
  runs: readonly Run[],
  chain: ChainWork,
  folderOf: (place: number) => string,
): readonly Piece[] {
  if (page.frame === null || runs.length === 0) return []
  const rows = new PageRows(page.frame, page.times)
  const folders = new Map<string, Run[]>()
  const names = new Map<number, string>()
  for (const run of runs) {
    const folder = names.get(run.place) ?? folderOf(run.place)
    names.set(run.place, folder)
    const others = folders.get(folder)
    if (others === undefined) folders.set(folder, [run])
    else others.push(run)
  }
  return [...folders].map(([folder, own]) => ({
    page: rows,
    folder,
    rows: choiceOf(own),
    stretches: own.map(
      ({ place, from, to }): Stretch => ({ partition: chain.partitionAt(place).key, rows: to - from }),
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
