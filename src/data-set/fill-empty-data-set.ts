import type { NamedPipeline, OwnedStore } from '../core/index.ts'
import {
  folderOf,
  moveUnknownShards,
  publishSealed,
  rewriteShard,
  rowGroupRows,
  shardExtension,
} from '../load/index.ts'
import { type Journal, type ManifestShard, manifestShard } from '../state/index.ts'
import type { DataSetOptions } from './options.ts'
import { planAsOfLastRun } from './plan-state.ts'
import { coderOf } from './rewriting.ts'

/**
 * Gives a data set without rows one shard without rows, in the folder of its first partition: a scheduled reader needs
 * a file with all columns, those in the folders' names too.
 */
export async function fillEmptyDataSet(
  pipeline: NamedPipeline,
  store: OwnedStore,
  journal: Journal,
  options: Pick<DataSetOptions, 'version' | 'build' | 'onLog'> & {
    /** Called with the shard. */
    readonly onFilled?: (shard: ManifestShard) => void
  },
): Promise<void> {
  const { state } = journal
  const { extract, load } = pipeline
  // While its partitions are exported again, it would wait with them.
  if (state.shards.length > 0 || state.redo.partitions.size > 0) return
  const [first] = planAsOfLastRun(pipeline, state)?.partitions() ?? []
  if (first === undefined) return
  const folder = folderOf(extract.resource, first, load.partitionBy)
  const known = state.partsOf.get(folder) ?? 0
  await moveUnknownShards(
    store,
    folder,
    (_, part) => part < known,
    (text) => options.onLog('warn', text),
  )
  const shard = await rewriteShard(
    NO_ROWS,
    { shard: state.nextShard, folder, part: known, partitions: [first.key] },
    {
      store,
      coder: await coderOf(pipeline, options),
      extension: shardExtension(load.format),
      rowGroupRows: rowGroupRows(load.format),
    },
  )
  await journal.append([shard])
  await publishSealed(store, shard)
  options.onFilled?.(manifestShard(shard))
}

const NO_ROWS = { async *[Symbol.asyncIterator]() {} }
