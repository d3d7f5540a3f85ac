import type { PartitionState, PartitionStates } from '../core/index.ts'

/**
 * All that a report says, and nothing that it may not: aggregates over rows, with small counts folded away
 * (`disclosure.ts`). It stands in the page as JSON, under the names that are given here.
 */
export type ReportData = {
  readonly version: 1
  readonly pipeline: string
  readonly resource: 'credentials' | 'reports'
  readonly format: 'parquet' | 'csv'
  readonly written_at: string
  /** Spillway's own. */
  readonly spillway: string
  readonly from: 'checkpoint' | 'manifest'
  readonly verdict: Verdict
  readonly asked: {
    /** The first of them, by the names that paths have. */
    readonly queries: readonly string[]
    readonly queries_total: number
    /** Queries that the pipeline file no longer has; what is exported of them stays. */
    readonly retired: number
    /** As `2024-01-01T00:00:00Z`; null: one window over all there is. */
    readonly windows: { readonly from: string; readonly until: string; readonly every: string } | null
    readonly masking: { readonly secret: string; readonly identity: string }
    readonly columns: readonly string[]
    readonly config_digest: string
  }
  readonly provenance: {
    /** Of the service. */
    readonly host: string
    readonly organization: string | null
    /** SHA-256 of `_manifest.json` as it was when the page was written; null: there was none. */
    readonly manifest: string | null
    readonly signed: boolean
    readonly pruned: { readonly partitions: number; readonly before: string } | null
  }
  readonly came: {
    readonly rows: Shown
    /** Told in the place of `rows` where these would tell what a class covers; null: they do not, or are few. */
    readonly rows_at_most: number | null
    readonly bytes: number
    readonly shards: number
    /** Of the last run. */
    readonly new_rows: Shown
    readonly quarantined: Shown
    readonly repeated: Shown
    /** Of how many rows the next four speak. */
    readonly counted_rows: Shown
    /** `axis`: every day, month or year from the first to the last, also those of which nothing is told. */
    readonly timeline: Groups & {
      readonly unit: TimeUnit
      readonly axis: readonly string[]
      /** Those of which something is still to be exported: their numbers are too low. */
      readonly incomplete: readonly string[]
    }
    readonly sources: Groups
    readonly hash_types: Groups
    readonly nulls: readonly { readonly column: string; readonly share: Share }[]
    /** null: what is known does not tell. */
    readonly heat: HeatMap | null
  }
  readonly went: {
    /** The last ones, oldest first. */
    readonly runs: readonly ReportRun[]
    readonly runs_total: number
    /** Why items were set aside; of runs that said so. All are named: they are fields and rules, and nobody's values. */
    readonly reasons: {
      readonly groups: readonly { readonly name: string; readonly rows: Shown }[]
      readonly others: Shown
    }
    /** Partitions that failed, the first of them, with the kind of what went wrong. */
    readonly failures: readonly { readonly partition: string; readonly kind: string }[]
    readonly failures_total: number
  }
  readonly shards: readonly ReportShard[]
}

/** A number of rows or items; null: not told, since it is one of few, or would tell of one. */
export type Shown = number | null

export type TimeUnit = 'day' | 'month' | 'year'

export type Groups = {
  readonly groups: readonly { readonly name: string; readonly rows: number }[]
  /** What is in none of them. */
  readonly others: Shown
}

/** Percent, 1 to 99; `few` and `nearly all` stand for counts that are not told. */
export type Share = number | 'none' | 'few' | 'nearly all' | 'all'

/** Whether everything that the pipeline file planned as of the last run is exported. */
export type Verdict = {
  readonly complete: boolean
  /** null: nobody knows, as the data set was moved without its state. */
  readonly partitions: (Omit<PartitionStates, 'pruned'> & { readonly total: number }) | null
  /** What the windows span, `until` excluded; null: there are none. */
  readonly span: { readonly from: string; readonly until: string } | null
}

/** A number of rows as it may be told: it lies between these; `most` null: nobody says. */
export type Between = { readonly least: number; readonly most: number | null }

export type HeatCell = Between & {
  /** Of several partitions the gravest. */
  readonly state: Exclude<PartitionState, 'pruned'>
}

export type HeatMap = {
  readonly columns: readonly string[]
  /** Those with failed partitions first, then those that are not complete, then the new ones. */
  readonly rows: readonly {
    readonly query: string
    /** It began in the last run; left out: it was there before. */
    readonly isNew?: boolean
    /** null: nothing is planned there. */
    readonly cells: readonly (HeatCell | null)[]
  }[]
  /** Queries that the last row stands for, together; 0: it is one like the others. */
  readonly folded: number
}

export type ReportRun = {
  readonly started_at: string
  readonly finished_at: string | null
  readonly status: string
  readonly rows: Shown
  readonly requests: number
  /** The fewest requests that its rows could have come with; null: not known. */
  readonly min_requests: number | null
  /** What of the quota it spent, and what the service said was left; null: the service does not tell. */
  readonly searches: number | null
  readonly left: number | null
  readonly retries: number
  readonly failures: number
  readonly repeated: Shown
  readonly quarantined: Shown
  readonly spillway: string
}

type ReportShard = {
  readonly path: string
  /** As in `CLASSES`. */
  readonly rows: number
  readonly kilobytes: number
  readonly sha256: string
}
