import type { PartitionState, PlanStates } from '../core/index.ts'

/**
 * All contents of a summary page: aggregates over rows, with small counts hidden (`disclosure.ts`). The page holds it as
 * JSON under these names.
 */
export type SummaryPageData = {
  readonly version: 1
  readonly pipeline: string
  readonly resource: 'credentials' | 'reports' | 'feed'
  readonly format: 'parquet' | 'csv'
  readonly written_at: string
  /** Spillway's own. */
  readonly spillway: string
  readonly from: 'checkpoint' | 'manifest'
  readonly verdict: Verdict
  readonly request: {
    /** The first queries, by their names in paths. */
    readonly queries: readonly string[]
    readonly queries_total: number
    /** Queries that the pipeline file no longer has; their shards stay. */
    readonly retired: number
    /** As `2024-01-01T00:00:00Z`; null: one window over everything. */
    readonly windows: { readonly from: string; readonly until: string; readonly every: string } | null
    readonly masking: { readonly secret: string; readonly identity: string }
    readonly columns: readonly string[]
    readonly config_digest: string
  }
  readonly provenance: {
    /** Of the service. */
    readonly host: string
    readonly organization: string | null
    /** SHA-256 of `_manifest.json` when the page was written; null: there was none. */
    readonly manifest: string | null
    readonly signed: boolean
    readonly pruned: { readonly partitions: number; readonly before: string } | null
  }
  readonly rows: {
    readonly rows: Shown
    /** Shown instead of `rows` if these would reveal the rows of a class; null: they do not, or are few. */
    readonly rows_at_most: number | null
    /** Instead of `rows`, the number that an earlier page showed, if few rows were added since; null: it is shown. */
    readonly rows_at_least: number | null
    readonly bytes: number
    readonly shards: number
    /** Of the last run. */
    readonly new_rows: Shown
    readonly quarantined: Shown
    readonly repeated: Shown
    /** Items of forgotten people. */
    readonly forgotten: Shown
    /** The number of rows that the next four fields cover. */
    readonly counted_rows: Shown
    /** `axis`: every day, month or year from the first to the last, also those without shown rows. */
    readonly timeline: Groups & {
      readonly unit: TimeUnit
      readonly axis: readonly string[]
      /** Times that are not completely exported: their numbers are too low. */
      readonly incomplete: readonly string[]
    }
    readonly sources: Groups
    readonly hash_types: Groups
    readonly nulls: readonly { readonly column: string; readonly share: Share }[]
    /** null: not known. */
    readonly heat: HeatMap | null
  }
  readonly runs: {
    /** The last ones, oldest first. */
    readonly runs: readonly SummaryPageRun[]
    readonly runs_total: number
    /** Why items were quarantined, as far as runs recorded it: fields and rules, no values. */
    readonly reasons: {
      readonly groups: readonly { readonly name: string; readonly rows: Shown }[]
      readonly others: Shown
    }
    /** The first failed partitions, with the kind of their error. */
    readonly failures: readonly { readonly partition: string; readonly kind: string }[]
    readonly failures_total: number
  }
  readonly shards: readonly {
    readonly path: string
    /** As in `CLASSES`. */
    readonly rows: number
    readonly kilobytes: number
    readonly sha256: string
  }[]
}

/** A number of rows or items; null: not shown, as it is small or would reveal a small one. */
export type Shown = number | null

export type TimeUnit = 'day' | 'month' | 'year'

export type Groups = {
  readonly groups: readonly { readonly name: string; readonly rows: number }[]
  /** The rows in none of them. */
  readonly others: Shown
}

/** Percent, 1 to 99; `few` and `nearly all` replace counts that are not shown. */
export type Share = number | 'none' | 'few' | 'nearly all' | 'all'

/** Whether everything that the pipeline file planned as of the last run is exported. */
export type Verdict = {
  readonly complete: boolean
  /** null: not known, as the data set was moved without its state. */
  readonly partitions: Omit<PlanStates, 'pruned'> | null
  /** The span of the windows, `until` excluded; null: there are none. */
  readonly span: { readonly from: string; readonly until: string } | null
  /** What it lacks by intent, a clause each. */
  readonly left_out: readonly string[]
}

/** The bounds of a number of rows; `most` null: no upper bound is shown. */
export type Between = { readonly least: number; readonly most: number | null }

export type HeatCell = Between & {
  /** The worst state of its partitions. */
  readonly state: Exclude<PartitionState, 'pruned'>
}

export type HeatMap = {
  readonly columns: readonly string[]
  /** Queries with failed partitions first, then incomplete ones, then new ones. */
  readonly rows: readonly {
    readonly query: string
    /** Whether it began in the last run. */
    readonly isNew?: boolean
    /** null: nothing is planned there. */
    readonly cells: readonly (HeatCell | null)[]
  }[]
  /** The number of queries that the last row sums up; 0: it is a single query. */
  readonly folded: number
}

export type SummaryPageRun = {
  readonly started_at: string
  readonly finished_at: string | null
  readonly status: string
  readonly rows: Shown
  readonly requests: number
  /** The least number of requests for its rows; null: not known. */
  readonly min_requests: number | null
  /** Quota spent, and quota left, by the service's count; null: not reported. */
  readonly searches: number | null
  readonly left: number | null
  readonly retries: number
  readonly failures: number
  readonly repeated: Shown
  readonly quarantined: Shown
  readonly spillway: string
}
