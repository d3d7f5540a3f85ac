import { type Micros, parseWindow } from '../../../core/index.ts'
import {
  type CheckpointState,
  isOver,
  type Prune,
  presentOf,
  type SealedShard,
} from '../../../state/index.ts'

export type OldPartitions = {
  /** In the order of their keys. */
  readonly removed: Prune['removed']
  /** The shards that hold rows of these partitions only, in the order of their paths. */
  readonly shards: readonly SealedShard[]
  readonly kept: readonly KeptPartition[]
}

export type KeptPartition = {
  readonly partition: string
  /** `unfinished`: it is not all exported, or its chain goes on; `shared`: it shares a shard with one that stays. */
  readonly reason: 'unfinished' | 'shared'
  /** The partition that it shares a shard with; null: none. */
  readonly with: string | null
}

/** A partition stays if it shares a shard with one that stays, or a chain that may still bring rows. */
export function oldPartitions(state: CheckpointState, before: Micros): OldPartitions {
  const old = new Set<string>()
  const kept = new Map<string, KeptPartition>()
  const keep = (partition: string, reason: KeptPartition['reason'], other: string | null = null): void => {
    old.delete(partition)
    const { rows, quarantined } = state.partitions.get(partition)!
    // Of those without items nobody misses anything.
    if (rows + quarantined > 0) kept.set(partition, { partition, reason, with: other })
  }
  for (const [query, windows] of state.partitions.branches) {
    for (const [name, exported] of windows) {
      const window = parseWindow(name)
      const key = `${query}/${name}`
      if (window === null || window.until > before || presentOf(state, key)?.state === 'pruned') continue
      if (isOver(exported)) old.add(key)
      else keep(key, 'unfinished')
    }
  }
  // A shard without rows, which shows the columns, belongs to no partition.
  const sealed = [...state.shards].filter(
    ({ rows, partitions }) => rows > 0 && partitions.some((key) => old.has(key)),
  )
  const shards = [...sealed, ...state.openShards.values()]
  const chains: string[][] = []
  for (const { query, windows, feed } of state.chains.values())
    if (feed === null) chains.push(windows.names.map((name) => `${query}/${name}`))
  for (let size = -1; size !== old.size; ) {
    size = old.size
    for (const keys of chains) {
      if (keys.every((key) => old.has(key))) continue
      for (const key of keys) if (old.has(key)) keep(key, 'unfinished')
    }
    for (const { partitions } of shards) {
      const staying = [...partitions].find((key) => !old.has(key))
      if (staying === undefined) continue
      for (const key of partitions) if (old.has(key)) keep(key, 'shared', staying)
    }
  }
  return {
    removed: [...old].sort().map((partition) => {
      const { rows, quarantined } = state.partitions.get(partition)!
      return { partition, rows, quarantined }
    }),
    shards: sealed
      .filter(({ partitions }) => partitions.every((key) => old.has(key)))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    kept: [...kept.values()],
  }
}
