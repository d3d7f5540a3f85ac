import type { JournalEntry, NamedPipeline, Store } from '../../core/index.ts'
import { chunkRows, ShardSet, type ShardSetOptions, shardExtension } from '../../load/index.ts'
import { type Checkpoint, manifestShard } from '../../state/index.ts'
import type { Cpu } from '../cpu/index.ts'
import type { RunObserver } from '../setting/index.ts'

export type OpenShardsParts = {
  readonly store: Store
  readonly cpu: Cpu
  readonly checkpoint: Checkpoint
  readonly observer: RunObserver
  /** Called with the lines of every commit, once they are durable. */
  readonly onRecorded: (facts: readonly JournalEntry[]) => void
}

/** The shards that a pipeline has open, on record in a checkpoint. @param numbers what its shards are called by */
export function openShards(
  { load }: Pick<NamedPipeline, 'load'>,
  { store, cpu, checkpoint, observer, onRecorded }: OpenShardsParts,
  numbers: Pick<ShardSetOptions<JournalEntry>, 'nextShard' | 'partsOf'>,
): ShardSet<JournalEntry> {
  return new ShardSet<JournalEntry>({
    store,
    coder: cpu.coder,
    workplace: cpu.workplace,
    extension: shardExtension(load.format),
    chunkRows: chunkRows(load.format),
    shardRows: load.shardRows,
    ...numbers,
    record: async (lines) => {
      await checkpoint.append(lines as readonly JournalEntry[])
      onRecorded(lines as readonly JournalEntry[])
    },
    warn: (message) => observer.log('warn', message),
    onPublished: (line) => {
      observer.log('info', 'shard published', { event: 'shard.published', path: line.path })
      observer.shard?.(manifestShard(line))
    },
  })
}
