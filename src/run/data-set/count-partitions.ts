import type { Pipeline } from '../../core/index.ts'
import { folderOf, ownsFolder } from '../../load/index.ts'
import type { Plan } from '../../plan/index.ts'
import { type CheckpointState, hasBegun, isOver } from '../../state/index.ts'

/** How many partitions of a plan are in which state. */
export type PlanCounts = {
  /** But for those that were pruned. */
  readonly total: number
  readonly done: number
  readonly partial: number
  readonly failed: number
  readonly pending: number
  readonly pruned: number
  /** Of those that are not done, how many have rows, or a chain that stands in them. */
  readonly begun: number
  /** Partitions still to be done in each folder that several share; folders with none are absent. */
  readonly unfinished: Map<string, number>
}

/** Goes through a plan once and counts what is done and what is left. */
export function countPartitions(pipeline: Pipeline, plan: Plan, state: CheckpointState | null): PlanCounts {
  const { extract, load } = pipeline
  const shared = !ownsFolder(extract.resource, load.partitionBy)
  const unfinished = new Map<string, number>()
  const counts = { done: 0, partial: 0, failed: 0, pending: 0, pruned: 0, begun: 0 }
  for (const partition of plan.partitions()) {
    const record = state?.partitions.get(partition.key)
    const where = record?.state ?? 'pending'
    counts[where]++
    if (record !== undefined && isOver(record)) continue
    if (record !== undefined && (where === 'partial' || hasBegun(record))) counts.begun++
    if (!shared) continue
    const folder = folderOf(extract.resource, partition, load.partitionBy)
    unfinished.set(folder, (unfinished.get(folder) ?? 0) + 1)
  }
  return { total: plan.total - counts.pruned, ...counts, unfinished }
}
