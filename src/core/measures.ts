/** Duration of one response: rows requested, and milliseconds. */
export type ResponseTime = readonly [size: number, ms: number]

/** What a page costs, by the two readings of the documentation: a search a request, or one for each 100 rows. */
export const READINGS = ['request', '100 rows'] as const
export type Reading = (typeof READINGS)[number]

/** What responses have shown about an endpoint. */
export type Measures = {
  /** Rows requested with the last served page; null: no page was served. */
  readonly pageSize: number | null
  /** Rows of the last page, where a larger one did not come; null: the largest came, or was not tried. */
  readonly limit: number | null
  /** Whether a cursor is only accepted with the size of the page that it came with. */
  readonly bindsSizes: boolean
  /** What pages cost, by the first page that told; null: none did. */
  readonly reading: Reading | null
  /** Of the last {@link MAX_TIMES} responses since `limit` changed. */
  readonly times: readonly ResponseTime[]
  /** Whether responses report how many searches are left; null: no response yet. */
  readonly reportsSearchesLeft: boolean | null
}

export const NOT_MEASURED: Measures = {
  pageSize: null,
  limit: null,
  bindsSizes: false,
  reading: null,
  times: [],
  reportsSearchesLeft: null,
}

export const MAX_TIMES = 32

export type ServiceFigures = Readonly<ReturnType<typeof figuresOf>>

/** Figures for status and summaries, of full pages; null: not measured. */
export function figuresOf({ pageSize, reading, reportsSearchesLeft }: Measures) {
  const isKnown = reading !== null || (pageSize ?? 0) <= ROWS_PER_SEARCH
  const perRequest =
    isKnown && pageSize !== null && reportsSearchesLeft === true ? mayCost(reading, pageSize) : null
  return {
    pageSize,
    searchesPerRequest: perRequest,
    searchesPer1000Rows: perRequest === null ? null : Math.round((perRequest * 1e6) / pageSize!) / 1000,
  }
}

/** Source: public documentation: one search retrieves up to 100 credentials. */
export const ROWS_PER_SEARCH = 100

/** Searches that a page of so many rows may cost. @param reading null: not known, so it is the more expensive one */
export function mayCost(reading: Reading | null, rows: number): number {
  return reading === 'request' ? 1 : Math.max(1, Math.ceil(rows / ROWS_PER_SEARCH))
}
