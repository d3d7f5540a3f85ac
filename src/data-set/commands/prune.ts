import { ExportError, formatInstant, locationOf, type Micros, parseWindow } from '../../core/index.ts'
import { type CheckpointState, isOver, type Prune, presentOf, type SealedShard } from '../../state/index.ts'
import { type Change, NO_CHANGE } from '../change.ts'
import type { ChangeOptions } from '../options.ts'
import type { ChangedDataSet, WritableDataSet } from '../writable-data-set.ts'

export type PruneResult = {
  readonly pipeline: string
  /** Windows that ended by this time are old enough. */
  readonly before: string
  readonly partitions: number
  readonly shards: number
  readonly rows: number
  readonly quarantined: number
  readonly bytes: number
  readonly removed: OldPartitions['removed']
  readonly kept: readonly KeptPartition[]
}

/** The journal keeps them as pruned: no run requests them again. @throws ExportError `config`; as {@link WritableDataSet.change} */
export async function pruneDataSet(
  dataSet: WritableDataSet,
  before: Micros,
  options: ChangeOptions,
): Promise<PruneResult> {
  const { pipeline, state } = dataSet
  if (pipeline.extract.windows === null)
    throw new ExportError({
      kind: 'config',
      what: 'prune needs windows, and the pipeline has none: the age of rows is not known',
      where: locationOf(pipeline, 'extract.windows'),
      next: 'Export to another load.path with extract.windows and every, or start over with a shorter range and --fresh.',
    })
  // They go, damaged or not.
  const goes = oldPartitions(state, before).shards.map(({ shard }) => shard)
  const { result } = await dataSet.change({ ...options, goes }, (at) =>
    pruning(at, before, options.clock.now()),
  )
  return result
}

function pruning({ pipeline, state }: ChangedDataSet, before: Micros, nowMs: number): Change<PruneResult> {
  const { removed, shards, kept } = oldPartitions(state, before)
  const counts = {
    partitions: removed.length,
    rows: removed.reduce((sum, { rows }) => sum + rows, 0),
    quarantined: removed.reduce((sum, { quarantined }) => sum + quarantined, 0),
  }
  const end = formatInstant(before)
  const result: PruneResult = {
    ...{ pipeline: pipeline.name, before: end, ...counts, removed, kept },
    shards: shards.length,
    bytes: shards.reduce((sum, { bytes }) => sum + bytes, 0),
  }
  if (removed.length === 0) return { ...NO_CHANGE, result }
  const pruned = { pruned_at: new Date(nowMs).toISOString(), before: end, ...counts, removed }
  const gone = shards.map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
  const groups = shards.map((shard) => ({ of: [shard], isEmptied: true }))
  return { ...NO_CHANGE, result, groups, entries: [{ kind: 'prune', ...pruned, shards: gone }] }
}

export type OldPartitions = {
  /** In the order of their keys. */
  readonly removed: Prune['removed']
  /** The shards that hold rows of these partitions only, in the order of their paths. */
  readonly shards: readonly SealedShard[]
  readonly kept: readonly KeptPartition[]
}

type KeptPartition = {
  readonly partition: string
  /** `unfinished`: it is not all exported, or its chain goes on; `shared`: it shares a shard with one that stays. */
  readonly reason: 'unfinished' | 'shared'
  /** The partition that it shares a shard with; null: none. */
  readonly with: string | null
}

/** A partition stays if it shares a shard with one that stays, or a chain that may still bring rows. */
export function oldPartitions(state: CheckpointState | null, before: Micros): OldPartitions {
  if (state === null) return { removed: [], shards: [], kept: [] }
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
