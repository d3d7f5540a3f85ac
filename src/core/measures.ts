/** Cost of one page: its rows, and an upper bound of the searches that it spent. */
export type PageCost = readonly [rows: number, searches: number]

/** Duration of one response: rows requested, and milliseconds. */
export type ResponseTime = readonly [size: number, ms: number]

/** What responses have shown about an endpoint. */
export type Measures = {
  /** Rows requested with the last served page; null: no page was served. */
  readonly pageSize: number | null
  /** The size of pages, where the endpoint could not serve the greatest in time; null: it could, or it was not tried. */
  readonly limit: number | null
  /** Of the last {@link MAX_COSTS} pages. */
  readonly costs: readonly PageCost[]
  /** Of the last {@link MAX_TIMES} responses since `limit` changed. */
  readonly times: readonly ResponseTime[]
  /** Whether responses report how many searches are left; null: no response yet. */
  readonly reportsSearchesLeft: boolean | null
}

export const NOT_MEASURED: Measures = {
  pageSize: null,
  limit: null,
  costs: [],
  times: [],
  reportsSearchesLeft: null,
}

export const MAX_COSTS = 256
export const MAX_TIMES = 32

export type ServiceFigures = Readonly<ReturnType<typeof figuresOf>>

/** Figures for status and summaries; null: not measured. */
export function figuresOf({ pageSize, costs }: Measures) {
  // A search that is repeated within ten minutes is free, which says nothing about the cost of other pages.
  const all = groupsOf(costs)
  const paid = all.filter(({ searches }) => searches > 0)
  const groups = paid.length > 0 ? paid : all
  const perRow = median(groups.flatMap(({ rows, searches }) => (rows === 0 ? [] : searches / rows)))
  return {
    pageSize,
    searchesPerRequest: rounded(median(groups.map(({ pages, searches }) => searches / pages))),
    searchesPer1000Rows: rounded(perRow === null ? null : perRow * 1000),
  }
}

/** Source: public documentation: one search retrieves up to 100 credentials. */
const ROWS_PER_SEARCH = 100

/** Cost of a page by the more expensive reading of the documentation: one search for each 100 rows. */
export function maxCost(rows: number): number {
  return Math.max(1, Math.ceil(rows / ROWS_PER_SEARCH))
}

/**
 * The measured cost of pages: per page, or per row. It is the median, because each cost is an upper bound: other users
 * of the organization spend as well.
 */
type Tariff = { readonly perPage: number } | { readonly perRow: number }

/**
 * null: not measured. Pages of few rows don't count: they cost one search by both readings. Neither do free pages: a
 * search that is repeated within ten minutes costs nothing, by both readings.
 */
function tariffOf(costs: readonly PageCost[]): Tariff | null {
  const conclusive = groupsOf(costs).filter(
    ({ pages, rows, searches }) => searches > 0 && rows / pages >= 2 * ROWS_PER_SEARCH,
  )
  const perPage = median(conclusive.map(({ pages, searches }) => searches / pages))
  if (perPage === null) return null
  // By the more expensive reading each of these pages costs at least two searches.
  if (perPage < 1.5) return { perPage: 1 }
  return { perRow: median(conclusive.map(({ rows, searches }) => searches / rows)) ?? 0 }
}

/** Searches that a page of this size may cost. */
export function mayCost(costs: readonly PageCost[], size: number): number {
  const tariff = tariffOf(costs)
  if (tariff === null) return maxCost(size)
  return 'perPage' in tariff ? tariff.perPage : wholeSearches(tariff.perRow * size)
}

/**
 * The number of rows that a page may have to cost at most so many searches. Where searches count rows, no more than the
 * documentation promises for them: the measure is rounded.
 */
export function rowsFor(costs: readonly PageCost[], searches: number): number {
  const tariff = tariffOf(costs)
  if (tariff !== null && 'perPage' in tariff) return searches < 1 ? 0 : Number.POSITIVE_INFINITY
  return Math.floor(Math.max(0, searches) / Math.max(tariff?.perRow ?? 0, 1 / ROWS_PER_SEARCH) + 1e-6)
}

/** Estimated searches of a page, if no earlier response reports how many were left. */
export function estimatedCost(costs: readonly PageCost[], rows: number): number {
  const tariff = tariffOf(costs)
  if (tariff !== null) return 'perPage' in tariff ? tariff.perPage : wholeSearches(tariff.perRow * rows)
  // Small pages cost one search by both readings, and tell nothing about larger ones.
  if (isFree(costs) || rows >= 2 * ROWS_PER_SEARCH) return maxCost(rows)
  return Math.max(1, Math.round(median(groupsOf(costs).map(({ pages, searches }) => searches / pages)) ?? 1))
}

/**
 * Estimated searches of chains with this many requests and rows.
 * @returns null before any measurement
 */
export function expectedCost(
  costs: readonly PageCost[],
  { requests, rows }: { readonly requests: number; readonly rows: number },
): number | null {
  if (isFree(costs)) return null
  const tariff = tariffOf(costs)
  if (tariff !== null) {
    return 'perPage' in tariff ? requests : Math.max(1, wholeSearches(tariff.perRow * rows))
  }
  const { searchesPerRequest } = figuresOf({ ...NOT_MEASURED, costs })
  return Math.max(1, Math.ceil((searchesPerRequest ?? 1) * requests))
}

/** Whether no page that cost anything was measured. */
function isFree(costs: readonly PageCost[]): boolean {
  return costs.every(([, searches]) => searches === 0)
}

/** Milliseconds that a page of this size takes; null: not measured. */
export function millisecondsAPage(times: readonly ResponseTime[], size: number): number | null {
  const sameSize = times.filter(([requested]) => requested === size)
  return median((sameSize.length > 0 ? sameSize : times).map(([, ms]) => ms))
}

type Group = { readonly pages: number; readonly rows: number; readonly searches: number }

/** A search may cover several pages of few rows. Such pages form one group. */
const GROUP_ROWS = 1000
const GROUP_PAGES = 20

function groupsOf(costs: readonly PageCost[]): readonly Group[] {
  const groups: Group[] = []
  let group = { pages: 0, rows: 0, searches: 0 }
  for (const [rows, searches] of costs) {
    group.pages++
    group.rows += rows
    group.searches += searches
    if (group.rows < GROUP_ROWS && group.pages < GROUP_PAGES) continue
    groups.push(group)
    group = { pages: 0, rows: 0, searches: 0 }
  }
  // An incomplete group is better than no measurement.
  if (groups.length === 0 && group.pages > 0) groups.push(group)
  return groups
}

/** Rounds up, with a tolerance for the rounding errors of sums of fractions. */
function wholeSearches(searches: number): number {
  return Math.max(1, Math.ceil(searches - 1e-6))
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000) / 1000
}

function median(values: readonly number[]): number | null {
  if (values.length === 0) return null
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
