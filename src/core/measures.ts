/** What one page cost: its rows, and by how much the searches left went down for it, at most. */
export type PageCost = readonly [rows: number, searches: number]

/** Duration of one response: rows requested, and milliseconds. */
export type ResponseTime = readonly [size: number, ms: number]

/** What responses have shown about an endpoint. */
export type Measures = {
  /** Rows requested with the last page that was served; null: none was. */
  readonly pageSize: number | null
  /** The page size to begin with, if the endpoint could not serve the greatest; null: it could, or was not tried. */
  readonly limit: number | null
  /** The same by query, of those that found their own. */
  readonly limits: ReadonlyMap<string, number | null>
  /** The last ones. */
  readonly costs: readonly PageCost[]
  /** The last ones. */
  readonly times: readonly ResponseTime[]
  /** Whether responses say how many searches are left; null: none came yet. */
  readonly tellsSearches: boolean | null
}

export const NOT_MEASURED: Measures = {
  pageSize: null,
  limit: null,
  limits: new Map(),
  costs: [],
  times: [],
  tellsSearches: null,
}

/** So many of the last are kept. */
export const MAX_COSTS = 256
export const MAX_TIMES = 32

/** As status and summaries show it; null: not measured. */
export type ServiceFigures = {
  readonly pageSize: number | null
  readonly searchesPerRequest: number | null
  readonly searchesPer1000Rows: number | null
}

export function figuresOf({ pageSize, costs }: Measures): ServiceFigures {
  const groups = groupsOf(costs)
  const perRow = median(groups.flatMap(({ rows, searches }) => (rows === 0 ? [] : searches / rows)))
  return {
    pageSize,
    searchesPerRequest: rounded(median(groups.map(({ pages, searches }) => searches / pages))),
    searchesPer1000Rows: rounded(perRow === null ? null : perRow * 1000),
  }
}

/** Source: public documentation: one search retrieves up to 100 credentials. */
const ROWS_PER_SEARCH = 100

/** What a page costs by the dearer reading of the documentation: one search for each 100 rows. */
export function dearerCost(rows: number): number {
  return Math.max(1, Math.ceil(rows / ROWS_PER_SEARCH))
}

/**
 * What pages cost by what was measured; null where that fits neither reading: pages of few rows cost one search by
 * both. The median counts: other users of the organization spend as well, so each cost is an upper bound.
 */
type Tariff = { readonly perPage: number } | { readonly perRow: number }

function tariffOf(costs: readonly PageCost[]): Tariff | null {
  const telling = groupsOf(costs).filter(({ pages, rows }) => rows / pages >= 2 * ROWS_PER_SEARCH)
  const perPage = median(telling.map(({ pages, searches }) => searches / pages))
  if (perPage === null) return null
  // By the dearer reading each of these pages cost two searches or more.
  if (perPage < 1.5) return { perPage: 1 }
  return { perRow: median(telling.map(({ rows, searches }) => searches / rows)) ?? 0 }
}

/** Searches that a page of so many rows may cost. */
export function mayCost(costs: readonly PageCost[], size: number): number {
  const tariff = tariffOf(costs)
  if (tariff === null) return dearerCost(size)
  return 'perPage' in tariff ? tariff.perPage : wholeSearches(tariff.perRow * size)
}

/** Searches that a page is likely to have cost, where no response before it says what was left. */
export function likelyCost(costs: readonly PageCost[], rows: number): number {
  const tariff = tariffOf(costs)
  if (tariff !== null) return 'perPage' in tariff ? tariff.perPage : wholeSearches(tariff.perRow * rows)
  if (costs.length === 0) return dearerCost(rows)
  return Math.max(1, Math.round(median(groupsOf(costs).map(({ pages, searches }) => searches / pages)) ?? 1))
}

/**
 * Searches that chains are likely to cost which bring so many rows with so many requests.
 * @returns null before any measurement
 */
export function expectedCost(
  costs: readonly PageCost[],
  { requests, rows }: { readonly requests: number; readonly rows: number },
): number | null {
  if (costs.length === 0) return null
  const tariff = tariffOf(costs)
  if (tariff !== null) {
    return 'perPage' in tariff ? requests : Math.max(1, wholeSearches(tariff.perRow * rows))
  }
  const { searchesPerRequest } = figuresOf({ ...NOT_MEASURED, costs })
  return Math.max(1, Math.ceil((searchesPerRequest ?? 1) * requests))
}

/** Milliseconds that a page of this size takes; null: none was measured. */
export function millisecondsAPage(times: readonly ResponseTime[], size: number): number | null {
  const alike = times.filter(([of]) => of === size)
  return median((alike.length > 0 ? alike : times).map(([, ms]) => ms))
}

type Group = { readonly pages: number; readonly rows: number; readonly searches: number }

/** A search may cover several pages of few rows; so these count together. */
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
  // What is left says less than a whole group, but more than nothing.
  if (groups.length === 0 && group.pages > 0) groups.push(group)
  return groups
}

/** Aggregates of fractions are a little off. */
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
