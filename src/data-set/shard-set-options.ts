import type { NamedPipeline, OwnedStore } from '../core/index.ts'
import { rowGroupRows, type ShardCoder, type ShardSetOptions, shardExtension } from '../load/index.ts'
import { type Journal, manifestShard } from '../state/index.ts'
import type { DataSetOptions } from './options.ts'

export function shardSetOptions(
  { load }: Pick<NamedPipeline, 'load'>,
  store: OwnedStore,
  { coder }: { readonly coder: ShardCoder },
  journal: Journal,
  { onLog, onShard }: Pick<DataSetOptions, 'onLog' | 'onShard'>,
): ShardSetOptions {
  const { state } = journal
  return {
    store,
    coder,
    log: journal,
    readsCost: load.location.kind !== 'disk',
    extension: shardExtension(load.format),
    rowGroupRows: rowGroupRows(load.format),
    shardRows: load.shardRows,
    nextShard: () => state.nextShard,
    partsOf: (folder) => state.partsOf.get(folder) ?? 0,
    unpublished: state.redo.sealed,
    onSealed: () => {},
    onPublished: (entry) => {
      onLog('info', 'shard published', { event: 'shard.published', path: entry.path })
      onShard?.(manifestShard(entry))
    },
  }
}
