import type { ExportError } from '../core/index.ts'
import type { CheckpointState, RunStatus } from '../state/index.ts'

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
  readonly shards: number
  readonly bytes: number
  readonly requests: number
  readonly retries: number
  readonly quarantined: number
  /** NUL characters that became U+FFFD, in CSV. */
  readonly replacedNuls: number
  /** Items that the service sent again within a chain; each was exported once. */
  readonly repeated: number
  /** What the service said last; null when it said nothing. */
  readonly searchesRemaining: number | null
  readonly durationMs: number
  /** When a run of this data set last ended as `complete`, epoch ms; null: none has. */
  readonly lastCompleteMs: number | null
  /** Absolute path of the manifest, or its address; null when it could not be written. */
  readonly manifest: string | null
  /** What stopped the run before its time; null when nothing did. */
  readonly error: ExportError | null
  /** Partitions that failed in this run, the first hundred, with why. */
  readonly failures: readonly { readonly partition: string; readonly message: string }[]
}

/** When a run of the data set last ended as `complete`, epoch ms; null: none has. */
export function lastCompleteMs({ runs }: CheckpointState): number | null {
  const finished = runs.findLast(({ status }) => status === 'complete')?.finished_at
  return finished == null ? null : Date.parse(finished)
}
