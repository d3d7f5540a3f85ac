import type { DataSetOptions } from '../data-set/index.ts'
import type { RunCounts } from '../state/index.ts'

/** The flags of a run, as they are if nobody sets them. */
export const RUN_FLAGS = {
  /** Consent to `transform.secret: plaintext`, needed for each run. */
  allowPlaintext: false,
  failFast: false,
  /** Removes what was exported before. */
  fresh: false,
}

export type RunFlags = Readonly<typeof RUN_FLAGS>

export function flagsOf(
  settings: { readonly [Flag in keyof RunFlags]?: RunFlags[Flag] | undefined },
): RunFlags {
  const names = Object.keys(RUN_FLAGS) as (keyof RunFlags)[]
  return Object.fromEntries(names.map((name) => [name, settings[name] ?? RUN_FLAGS[name]])) as RunFlags
}

/** What a run needs besides its pipeline. Callbacks get no secret and no value of a record. */
export type RunOptions = DataSetOptions &
  RunFlags & {
    /** On abort, requests in flight are aborted as well. */
    readonly abort: AbortSignal
    /** Called four times a second while requests are sent, before the first one and after the last. */
    readonly onProgress: (progress: Progress) => void
    /** Called with each step before the first progress. */
    readonly onOpening?: (step: OpeningStep) => void
    /** A UUID; default: a new one. With the id of the last run this one continues it, also in the budget. */
    readonly runId?: string
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
