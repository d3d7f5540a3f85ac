import type { WriteOptions } from '../data-set/index.ts'
import type { RestCatalog } from '../open-tables/index.ts'
import type { Hold, ManifestShard, RunCounts } from '../state/index.ts'

/** What a run needs besides its pipeline. Callbacks get no secret and no value of a record. */
export type RunOptions = WriteOptions & {
  /** Consent to `transform.secret: plaintext`, needed for each run. */
  readonly allowPlaintext: boolean
  readonly failFast: boolean
  /** Removes what was exported before. */
  readonly fresh: boolean
  /** Partitions, or globs of them, to be exported again. */
  readonly redo: readonly string[]
  /** On abort, requests in flight are aborted as well. */
  readonly abort: AbortSignal
  /** Called four times a second while requests are sent, before the first one and after the last. */
  readonly onProgress: (progress: Progress) => void
  /** Called with each step before the first progress. */
  readonly onOpening?: (step: OpeningStep) => void
  /** Called when a shard is published. */
  readonly onShard?: (shard: ManifestShard) => void
  /** A UUID; default: a new one. With the id of the last run this one continues it, also in the budget. */
  readonly runId?: string
  /** The owner for which a queue holds the data set; undefined: this process. */
  readonly hold?: Hold
  /** As the run has opened it; null: none. */
  readonly catalog?: RestCatalog | null
}

/** `lock`: another run may hold the data set. Its lease expires at this time (epoch ms) unless a heartbeat comes. */
export type OpeningStep =
  | { readonly kind: 'lock'; readonly untilMs: number }
  | { readonly kind: 'checkpoint' }

export type Progress = RunCounts & {
  readonly partitionsTotal: number
  readonly partitionsDone: number
  /** Partitions that were done when the run began. */
  readonly partitionsDoneBefore: number
  /** Partitions that this run has passed, by the times of its rows, parts as fractions. */
  readonly partitionsAdvanced: number
  readonly partitionsFailed: number
  /** Requests that may still be sent, by the budget of the run and the reserve of the quota; null: no limit. */
  readonly requestsAllowed: AllowedRequests | null
  /** End of the pause that the service demanded, epoch milliseconds; null: no pause. */
  readonly pausedUntilMs: number | null
  /** Requests that wait for their retry. */
  readonly retrying: number
}

/** Requests that a run may still send, and the limit that applies: the budget of the run, or the rest of the quota. */
export type AllowedRequests = { readonly requests: number; readonly by: 'budget' | 'quota' }
