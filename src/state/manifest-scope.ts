import * as z from 'zod'
import { PARTITION_STATES, type PartitionState } from '../core/index.ts'
import type { CheckpointState } from './checkpoint/checkpoint-state.ts'
import { hasBegun } from './checkpoint/folded-partition.ts'

const count = z.number().int().nonnegative()

/** What the pipeline file requests, without flags: with the states of partitions it says what an export covers. */
export type ManifestScope = {
  /** Host of the service. */
  service: string
  /** By their names in paths, sorted. */
  queries: string[]
  /** As the file has them, `until` excluded or `now`; null: one window over everything. */
  windows: { from: string; until: string; every: string | null; lag_seconds: number } | null
  on_invalid: string
  /** A count, or a share such as `1%`. */
  max_quarantined: string
}

export const manifestPartitionSchema = z.object({
  key: z.string(),
  state: z.enum(PARTITION_STATES),
  rows: count,
  quarantined: count,
  error: z.object({ cause: z.string(), next: z.string() }).optional(),
})

export type ManifestPartition = {
  key: string
  state: PartitionState
  rows: number
  quarantined: number
  /** Why it failed, as all partitions say that failed for the same reason, and what to do. */
  error?: { cause: string; next: string } | undefined
}

/** What a `prune` removed. */
export type ManifestPrune = {
  pruned_at: string
  before: string
  partitions: number
  rows: number
  quarantined: number
  removed: { partition: string; rows: number; quarantined: number }[]
  shards: { path: string; rows: number; sha256: string }[]
}

/**
 * Every partition that is planned, or of which the data set has something, in the order of their keys: retired ones and
 * pruned ones too. A partition that is exported again is listed as it was.
 */
export function* manifestPartitions(
  { partitions }: Pick<CheckpointState, 'partitions'>,
  planned: Iterable<string>,
): Generator<ManifestPartition> {
  const keys = new Set(planned)
  for (const [key, folded] of partitions) {
    if (hasBegun(folded) || folded.state === 'failed') keys.add(key)
  }
  for (const key of [...keys].sort()) {
    const folded = partitions.get(key)
    const quarantined = folded?.quarantined ?? 0
    const failure = folded?.state === 'failed' ? folded.error : null
    const error = failure === null ? {} : { error: { cause: failure.cause, next: failure.next } }
    yield { key, state: folded?.state ?? 'pending', rows: folded?.rows ?? 0, quarantined, ...error }
  }
}
