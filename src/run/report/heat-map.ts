import { classOf, type ReportData, type TimeUnit } from '../../report/index.ts'
import type { Known, KnownPartition } from './known.ts'

// What fits on a page of paper, across and down.
const MAX_COLUMNS = 24
const MAX_QUERIES = 40

/**
 * Rows by query and window, as classes. Windows that are too many for a page are put together by month or year; of
 * queries the largest have a line of their own.
 */
export function heatMap({ partitions }: Known): ReportData['came']['heat'] {
  if (partitions === null) return null
  const columnOf = columnsFor(partitions())
  const queries = new Map<string, number>()
  const columns = new Set<string>()
  for (const { query, window, rows } of partitions()) {
    queries.set(query, (queries.get(query) ?? 0) + rows)
    columns.add(columnOf(window))
  }
  const shown = [...columns].sort().slice(-MAX_COLUMNS)
  const largest = [...queries]
    .sort(([a, rowsOfA], [b, rowsOfB]) => rowsOfB - rowsOfA || (a < b ? -1 : 1))
    .slice(0, queries.size > MAX_QUERIES ? MAX_QUERIES - 1 : MAX_QUERIES)
    .map(([query]) => query)
    .sort()
  const counts = new Map(largest.map((query) => [query, new Map<string, number>()]))
  const others = new Map<string, number>()
  for (const { query, window, rows } of partitions()) {
    const line = counts.get(query) ?? others
    const column = columnOf(window)
    line.set(column, (line.get(column) ?? 0) + rows)
  }
  const lineOf = (query: string, line: ReadonlyMap<string, number>) => ({
    query,
    cells: shown.map((column) => {
      const rows = line.get(column)
      return rows === undefined ? null : classOf(rows)
    }),
  })
  const folded = queries.size - largest.length
  const rows = [...counts].map(([query, line]) => lineOf(query, line))
  if (folded > 0) rows.push(lineOf(`${folded} others`, others))
  return { columns: shown, rows, folded }
}

/** The finest of windows, months and years that fit. */
function columnsFor(partitions: Iterable<KnownPartition>): (window: string) => string {
  const windows = new Set<string>()
  const months = new Set<string>()
  for (const { window } of partitions) {
    if (windows.size <= MAX_COLUMNS) windows.add(window)
    months.add(startOf(window, 'month'))
  }
  if (windows.size <= MAX_COLUMNS) return shortName
  return (window) => startOf(window, months.size <= MAX_COLUMNS ? 'month' : 'year')
}

function startOf(window: string, unit: TimeUnit): string {
  return window === 'all' ? window : window.slice(0, unit === 'year' ? 4 : 7)
}

/** `2024-01-01..2024-02-01` → `2024-01-01`: where it ends is where the next one begins. */
function shortName(window: string): string {
  return window.split('..')[0]!
}
