import { parseWindow, type Window } from '../../core/index.ts'
import {
  asParts,
  type Between,
  type HeatCell,
  NO_ROWS,
  type Sum,
  type SummaryPageData,
  shownCells,
  type TimeUnit,
  withPart,
} from '../../report/index.ts'
import type { Known } from './known.ts'

// The limits of a printed page, across and down.
const MAX_COLUMNS = 24
const MAX_QUERIES = 40

/** Rows by query and window, and the constraints under which other figures reveal no small count. */
export type RowsByWindow = {
  readonly map: NonNullable<SummaryPageData['rows']['heat']>
  /** The same, with states of cells and whether they have rows. */
  readonly bare: NonNullable<SummaryPageData['rows']['heat']>
  /** The same, with cells shown by classes only. */
  readonly coarse: NonNullable<SummaryPageData['rows']['heat']>
  /** Columns that may only be shown as one; null: the whole data set. */
  readonly together: readonly Window[] | null
  /** The window of each column; empty for a data set without windows. */
  readonly columns: readonly Window[]
  /** False: not even the total may be shown. */
  readonly safe: boolean
}

type Cell = { readonly sum: Sum; readonly state: HeatCell['state'] }

/**
 * Rows by query and window. If there are too many windows for a page, they are grouped by month or year. The queries
 * with a line of their own are first those that failed or are not complete, then new ones, then the largest.
 */
export function heatMap({ partitions, newQueries }: Known): RowsByWindow | null {
  if (partitions === null) return null
  const queries = new Map<string, { rows: number; rank: number }>()
  // A million partitions have few windows, so each is parsed once.
  const windows = new Set<string>()
  for (const { query, window, rows, state } of partitions()) {
    const known = queries.get(query) ?? { rows: 0, rank: newQueries.has(query) ? NEW_RANK : RANKS.done }
    known.rows += rows
    known.rank = Math.min(known.rank, RANKS[state])
    queries.set(query, known)
    windows.add(window)
  }
  const columnOf = columnsFor(windows)
  const spans = new Map<string, Window | null>()
  for (const window of windows) {
    const column = columnOf(window)
    spans.set(column, joined(spans.get(column), parseWindow(window)))
  }
  const shown = [...spans.keys()].sort().slice(-MAX_COLUMNS)
  const listed = [...queries]
    .sort(([a, one], [b, other]) => one.rank - other.rank || other.rows - one.rows || (a < b ? -1 : 1))
    .slice(0, queries.size > MAX_QUERIES ? MAX_QUERIES - 1 : MAX_QUERIES)
    .sort(([a, one], [b, other]) => one.rank - other.rank || (a < b ? -1 : 1))
    .map(([query]) => query)
  const lines = new Map(listed.map((query) => [query, new Map<string, Cell>()]))
  const others = new Map<string, Cell>()
  for (const { query, window, rows, state, files = [] } of partitions()) {
    const line = lines.get(query) ?? others
    const column = columnOf(window)
    const { sum, state: before } = line.get(column) ?? { sum: NO_ROWS, state: 'done' }
    const gravest = RANKS[state] < RANKS[before] ? state : before
    const parts = files.reduce((all, each) => all + each, 0) === rows ? files : [rows]
    line.set(column, { sum: parts.reduce(withPart, sum), state: gravest })
  }
  const folded = queries.size - listed.length
  if (folded > 0) lines.set(`${folded} others`, others)
  // The total includes columns that are not shown.
  const all = [...spans.keys()]
  const columns = all.map((column) => [...lines.values()].map((line) => line.get(column)?.sum ?? NO_ROWS))
  const safeCells = shownCells(columns)
  const drawn = (cells: readonly (readonly Between[])[]) => ({
    columns: shown,
    rows: [...lines].map(([query, line], i) => ({
      query,
      ...(newQueries.has(query) ? { isNew: true } : {}),
      cells: shown.map((column) => {
        const cell = line.get(column)
        return cell === undefined ? null : { ...cells[all.indexOf(column)]![i]!, state: cell.state }
      }),
    })),
    folded,
  })
  const together = [...safeCells.together].map((i) => spans.get(all[i]!) ?? null)
  return {
    map: drawn(safeCells.cells),
    bare: drawn(columns.map((sums) => sums.map(({ rows }) => (rows > 0 ? SOME : NONE)))),
    coarse: drawn(columns.map((sums) => sums.map(asParts))),
    together: together.includes(null) ? null : together.filter((window) => window !== null),
    columns: [...spans.values()].filter((window) => window !== null),
    safe: safeCells.safe,
  }
}

const NONE: Between = { least: 0, most: 0 }
const SOME: Between = { least: 1, most: null }

const RANKS = { failed: 0, partial: 1, pending: 2, done: 4 } as const
const NEW_RANK = 3

function joined(one: Window | null | undefined, other: Window | null): Window | null {
  if (one == null || other === null) return other
  return { from: Math.min(one.from, other.from), until: Math.max(one.until, other.until) }
}

/** The finest of windows, months and years that fit. */
function columnsFor(windows: ReadonlySet<string>): (window: string) => string {
  if (windows.size <= MAX_COLUMNS) return shortName
  const months = new Set([...windows].map((window) => startOf(window, 'month')))
  return (window) => startOf(window, months.size <= MAX_COLUMNS ? 'month' : 'year')
}

function startOf(window: string, unit: TimeUnit): string {
  return window === 'all' ? window : window.slice(0, unit === 'year' ? 4 : 7)
}

/** `2024-01-01..2024-02-01` → `2024-01-01`: a window ends where the next one begins. */
function shortName(window: string): string {
  return window.split('..')[0]!
}
