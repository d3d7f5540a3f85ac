import type { NamedPipeline, OwnedStore } from '../core/index.ts'
import type { ShardSetOptions, ShardWriter } from '../load/index.ts'
import { type Journal, manifestShard } from '../state/index.ts'
import type { DataSetOptions } from './options.ts'

export function shardSetOptions(
  { load }: Pick<NamedPipeline, 'load'>,
  store: OwnedStore,
  writer: ShardWriter,
  journal: Journal,
  { onLog, onShard }: Pick<DataSetOptions, 'onLog' | 'onShard'>,
): ShardSetOptions {
  return {
    store,
    writer,
    log: journal,
    readsCost: load.location.kind !== 'disk',
    shardRows: load.shardRows,
    onSealed: () => {},
    onPublished: (entry) => {
      onLog('info', 'shard published', { event: 'shard.published', path: entry.path })
      onShard?.(manifestShard(entry))
    },
  }
}
