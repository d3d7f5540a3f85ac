import * as z from 'zod'
import type { CheckpointState } from '../checkpoint/fold-journal.ts'
import { hasBegun, PARTITION_STATES, type PartitionState } from '../checkpoint/folded-partition.ts'

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

type Partitions = Pick<CheckpointState, 'partitions' | 'openShards' | 'redo'>

/** The state of each partition as readers see it: `done` once all rows are published; a redone one is as it was. */
export function publishedStates({
  partitions,
  openShards,
  redo,
}: Partitions): (key: string) => PartitionState {
  const waiting = new Set([...openShards.values()].flatMap((shard) => [...shard.partitions]))
  return (key) => {
    const state = partitions.get(key)?.state ?? 'pending'
    return state === 'done' && waiting.has(key) && !redo.partitions.has(key) ? 'partial' : state
  }
}

/** All partitions that are planned or present, by key. */
export function* manifestPartitions(
  state: Partitions,
  planned: Iterable<string>,
): Generator<ManifestPartition> {
  const { partitions } = state
  const stateOf = publishedStates(state)
  const keys = new Set(planned)
  for (const [key, folded] of partitions) {
    if (hasBegun(folded) || folded.state === 'failed') keys.add(key)
  }
  for (const key of [...keys].sort()) {
    const folded = partitions.get(key)
    const failure = folded?.state === 'failed' ? folded.error : null
    const { cause = '', next = '', ended } = failure ?? {}
    yield {
      key,
      state: stateOf(key),
      rows: folded?.rows ?? 0,
      quarantined: folded?.quarantined ?? 0,
      ...(folded?.repeated ? { repeated: folded.repeated } : {}),
      ...(folded?.forgotten ? { forgotten: folded.forgotten } : {}),
      ...(failure === null ? {} : { error: { cause, next, ...(ended === true ? { ended } : {}) } }),
    }
  }
}
