import * as z from 'zod'
import type { CheckpointState } from './checkpoint/checkpoint-state.ts'
import { hasBegun } from './checkpoint/folded-partition.ts'
import { PARTITION_STATES } from './partition-states.ts'

const count = z.number().int().nonnegative()

export const manifestPartitionSchema = z.object({
  key: z.string(),
  state: z.enum(PARTITION_STATES),
  rows: count,
  quarantined: count,
  repeated: count.optional(),
  forgotten: count.optional(),
  /** Why it failed, as all say that failed for the same reason. `ended`: nothing of it is left to request. */
  error: z.object({ cause: z.string(), next: z.string(), ended: z.literal(true).optional() }).optional(),
})
export type ManifestPartition = z.infer<typeof manifestPartitionSchema>

/** All partitions that are planned or present, by key. `done`: all rows are published. Redone ones are as they were. */
export function* manifestPartitions(
  { partitions, openShards, redo }: Pick<CheckpointState, 'partitions' | 'openShards' | 'redo'>,
  planned: Iterable<string>,
): Generator<ManifestPartition> {
  const keys = new Set(planned)
  for (const [key, folded] of partitions) {
    if (hasBegun(folded) || folded.state === 'failed') keys.add(key)
  }
  const waiting = new Set([...openShards.values()].flatMap((shard) => [...shard.partitions]))
  for (const key of [...keys].sort()) {
    const folded = partitions.get(key)
    const state = folded?.state ?? 'pending'
    const isWaiting = state === 'done' && waiting.has(key) && !redo.partitions.has(key)
    const failure = state === 'failed' ? (folded?.error ?? null) : null
    const { cause = '', next = '', ended } = failure ?? {}
    yield {
      key,
      state: isWaiting ? 'partial' : state,
      rows: folded?.rows ?? 0,
      quarantined: folded?.quarantined ?? 0,
      ...(folded?.repeated ? { repeated: folded.repeated } : {}),
      ...(folded?.forgotten ? { forgotten: folded.forgotten } : {}),
      ...(failure === null ? {} : { error: { cause, next, ...(ended === true ? { ended } : {}) } }),
    }
  }
}
