import type { ExportError, RunStatus, ServiceFigures } from '../core/index.ts'
import type { CheckpointState } from '../state/index.ts'
import type { FailureCause } from './chains/index.ts'

/** How a run went. */
export type RunSummary = {
  readonly pipeline: string
  readonly status: RunStatus
  readonly partitions: {
    readonly total: number
    readonly done: number
    readonly failed: number
    readonly pending: number
  }
  /** Of this run, as are the figures that follow. */
  readonly rows: number
  /** What the data set holds by now, of all its runs. */
  readonly dataSet: { readonly rows: number }
  readonly shards: number
  readonly bytes: number
  readonly requests: number
  readonly retries: number
  readonly quarantined: number
  /** NUL characters that became U+FFFD, in CSV. */
  readonly replacedNuls: number
  /** Items that the service sent again within a chain; each was exported once. */
  readonly repeated: number
  /** What of the quota was spent, by the service's own count, the first page estimated; null when it said nothing. */
  readonly searchesSpent: number | null
  /** What the service said last; null when it said nothing. */
  readonly searchesRemaining: number | null
  /** What pages cost and how large they may be, as measured by all runs of the data set. */
  readonly service: ServiceFigures
  readonly durationMs: number
  /** When a run of this data set last ended as `complete`, epoch ms; null: none has. */
  readonly lastCompleteMs: number | null
  /** Absolute path of the manifest, or its address; null when it could not be written. */
  readonly manifest: string | null
  /** What stopped the run before its time; null when nothing did. */
  readonly error: ExportError | null
  /** Partitions that failed in this run, the first hundred, with why. */
  readonly failures: readonly { readonly partition: string; readonly message: string }[]
  /** Why they failed, those that failed alike together. */
  readonly causes: readonly FailureCause[]
}

/** When a run of the data set last ended as `complete`, epoch ms; null: none has. */
export function lastCompleteMs({ runs }: CheckpointState): number | null {
  const finished = runs.findLast(({ status }) => status === 'complete')?.finished_at
  return finished == null ? null : Date.parse(finished)
}
