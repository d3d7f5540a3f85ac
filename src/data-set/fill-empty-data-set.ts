import type { NamedPipeline } from '../core/index.ts'
import { folderOf, type ShardSet } from '../load/index.ts'
import type { Plan } from '../plan/index.ts'
import type { CheckpointState } from '../state/index.ts'

/**
 * Gives a data set without rows one shard without rows, in the folder of its first partition: a scheduled reader needs
 * a file with all columns, those in the folders' names too.
 */
export async function fillEmptyDataSet(
  { extract, load }: NamedPipeline,
  state: CheckpointState,
  shards: ShardSet,
  plan: Plan,
): Promise<void> {
  if (state.shards.length > 0) return
  for (const partition of plan.partitions()) {
    await shards.sealEmpty(folderOf(extract.resource, partition, load.partitionBy), partition.key)
    return
  }
}
