/** Duration of one response: rows requested, and milliseconds. */
export type ResponseTime = readonly [size: number, ms: number]

/** What responses have shown about an endpoint. */
export type Measures = {
  /** Rows requested with the last served page; null: no page was served. */
  readonly pageSize: number | null
  /** Rows of the last page, where a larger one did not come; null: the largest came, or was not tried. */
  readonly limit: number | null
  /** Whether a cursor is only accepted with the size of the page that it came with. */
  readonly bindsSizes: boolean
  /** Of the last {@link MAX_TIMES} responses since `limit` changed. */
  readonly times: readonly ResponseTime[]
  /** Whether responses report how many searches are left; null: no response yet. */
  readonly reportsSearchesLeft: boolean | null
}

export const NOT_MEASURED: Measures = {
  pageSize: null,
  limit: null,
  bindsSizes: false,
  times: [],
  reportsSearchesLeft: null,
}

export const MAX_TIMES = 32

/** Figures for status and summaries; null: not measured. */
export type ServiceFigures = Pick<Measures, 'pageSize'>

/**
 * Searches of the quota that a page costs.
 * @param rowsPerSearch rows that one search covers, by `service.rows_per_search`; null: a page is one search
 */
export function searchesOf(rows: number, rowsPerSearch: number | null): number {
  return rowsPerSearch === null ? 1 : Math.max(1, Math.ceil(rows / rowsPerSearch))
}
