/** `partial`: begun, not finished; `pending`: not begun. */
export type PartitionState = (typeof PARTITION_STATES)[number]

export const PARTITION_STATES = ['done', 'partial', 'failed', 'pending', 'pruned'] as const

export type PartitionStates = { readonly [State in PartitionState]: number }

export const NO_PARTITIONS: PartitionStates = { done: 0, partial: 0, failed: 0, pending: 0, pruned: 0 }

/** Number of partitions of a plan by state, and of all but the pruned ones. */
export type PlanStates = PartitionStates & { readonly total: number }

/** Number of partitions of a plan that are done and that are left. `pending`: neither done nor failed. */
export type PartitionCounts = Pick<PlanStates, 'total' | 'done' | 'failed' | 'pending'>

export function partitionCounts(
  total: number,
  { done, failed }: Pick<PartitionCounts, 'done' | 'failed'>,
): PartitionCounts {
  return { total, done, failed, pending: total - done - failed }
}
