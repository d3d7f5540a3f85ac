import {
  type Micros,
  type OwnedStore,
  type Prune,
  parseWindow,
  sideBySide,
  type Window,
} from '../../core/index.ts'
import {
  isAsSealed,
  listSealed,
  publishSealed,
  QUARANTINE_FOLDER,
  quarantinePath,
  SEALED_FOLDER,
  sealedPath,
} from '../../load/index.ts'
import {
  type CheckpointState,
  isOver,
  type SealedShard,
  saveCheckpoint,
  splitPath,
} from '../../state/index.ts'

/**
 * Journals that partitions are pruned, in one entry. From then on no run requests them and no reader of the checkpoint
 * expects their shards. The next run that opens the data set removes their files.
 */
export async function recordPrune(
  store: OwnedStore,
  state: CheckpointState,
  { partitions, shards }: OldPartitions,
  prune: Prune,
): Promise<void> {
  await saveCheckpoint(store, state, { partitions, shards: new Set(shards.keys()), prune })
}

/** Removes the files of replaced and pruned shards, and what is sealed but never published. */
export async function removeInvalidated(
  store: OwnedStore,
  state: CheckpointState,
  stop: AbortSignal | null = null,
): Promise<void> {
  await sideBySide(state.invalidated, async (path) => {
    stop?.throwIfAborted()
    await store.remove(path)
  })
  await removeNameless(store, state)
}

/** Publishes what a run that crashed has sealed: the manifest is going to list it. */
export async function publishLeft(store: OwnedStore, state: CheckpointState): Promise<void> {
  const names = new Set(await listSealed(store))
  if (names.size === 0) return
  for (const shard of state.shards) {
    const [, name] = splitPath(sealedPath(shard.shard, shard.sha256))
    if (!names.has(name) || (await store.size(shard.path)) !== null) continue
    if (await isAsSealed(store, shard)) await publishSealed(store, shard)
  }
}

/** Removes sealed, never published shards that the journal no longer has. */
async function removeNameless(store: OwnedStore, state: CheckpointState): Promise<void> {
  const names = await listSealed(store)
  if (names.length === 0) return
  const known = new Set(state.held.keys())
  for (const { shard } of state.shards) known.add(shard)
  for (const name of names) {
    if (!known.has(Number.parseInt(name, 10))) await store.remove(`${SEALED_FOLDER}/${name}`)
  }
}

/** Removes the quarantine files of pruned partitions, which no journal entry names. */
export async function removePrunedQuarantine(store: OwnedStore, state: CheckpointState): Promise<void> {
  const names = new Set(await store.list(QUARANTINE_FOLDER))
  if (names.size === 0) return
  for (const [key, folded] of state.partitions) {
    if (folded.state !== 'pruned') continue
    const path = quarantinePath(key)
    if (names.has(splitPath(path)[1])) await store.remove(path)
  }
}

/** The partitions that are old enough to be pruned, and those of them that have to stay. */
export type OldPartitions = {
  /** By key. */
  readonly partitions: ReadonlySet<string>
  /** The shards that hold rows of these partitions only. */
  readonly shards: ReadonlyMap<number, SealedShard>
  readonly rows: number
  readonly quarantined: number
  readonly bytes: number
  readonly kept: readonly KeptPartition[]
}

/** A partition that is old enough but stays. */
export type KeptPartition = {
  readonly partition: string
  /**
   * - `unfinished`: it is not completely exported, or its chain has not ended
   * - `open`: it has rows in a shard that is still being written
   * - `shared`: it has rows in a shard with a partition that stays
   */
  readonly reason: 'unfinished' | 'open' | 'shared'
  /** The partition that it shares a shard with; null: none. */
  readonly with: string | null
}

/**
 * Finds partitions whose windows ended by an instant, also those of retired queries. Partitions and shards are removed
 * as a whole: a partition stays if it shares a shard with one that stays.
 */
export function oldPartitions(state: CheckpointState, before: Micros): OldPartitions {
  const old = new Set<string>()
  const kept = new Map<string, KeptPartition>()
  const keep = (partition: string, reason: KeptPartition['reason'], other: string | null = null): void => {
    old.delete(partition)
    kept.set(partition, { partition, reason, with: other })
  }
  const ranges = rangesUnderWay(state)
  for (const [query, windows] of state.partitions.branches) {
    const underWay = ranges.get(query) ?? []
    for (const [name, folded] of windows) {
      const window = parseWindow(name)
      if (window === null || window.until > before || folded.state === 'pruned') continue
      const key = `${query}/${name}`
      const { former, rows, quarantined } = folded
      const mayGetMore = underWay.some(({ from, until }) => window.from >= from && window.until <= until)
      if (former === undefined && isOver(folded) && !mayGetMore) old.add(key)
      else if (former !== undefined || rows > 0 || quarantined > 0) keep(key, 'unfinished')
    }
  }
  for (const { partitions } of [...state.openShards.values(), ...state.held.values()]) {
    for (const key of partitions) if (old.has(key)) keep(key, 'open')
  }
  const shards = shardsOf(old, state)
  for (let size = -1; size !== kept.size; ) {
    size = kept.size
    for (const { partitions } of shards.values()) {
      const staying = partitions.find((key) => !old.has(key))
      if (staying === undefined) continue
      for (const key of partitions) if (old.has(key)) keep(key, 'shared', staying)
    }
  }
  for (const [number, { partitions }] of shards) {
    if (!partitions.every((key) => old.has(key))) shards.delete(number)
  }
  return { partitions: old, shards, ...sums(old, shards, state), kept: [...kept.values()] }
}

/** What a prune removes, by name: the journal and the manifest keep it. */
export function removedBy(
  { partitions, shards }: Pick<OldPartitions, 'partitions' | 'shards'>,
  state: CheckpointState,
): Pick<Prune, 'removed' | 'shards'> {
  return {
    removed: [...partitions].sort().map((partition) => {
      const { rows = 0, quarantined = 0 } = state.partitions.get(partition) ?? {}
      return { partition, rows, quarantined }
    }),
    shards: [...shards.values()]
      .map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
  }
}

/** The ranges of unfinished chains, by query: any of their windows may get more rows. */
function rangesUnderWay({ chains }: CheckpointState): ReadonlyMap<string, readonly Window[]> {
  const ranges = new Map<string, Window[]>()
  for (const { query, windows } of chains.values()) {
    const { range } = windows
    if (range !== null) ranges.set(query, [...(ranges.get(query) ?? []), range])
  }
  return ranges
}

/** Shards with rows of the given partitions. A shard without rows, which shows the columns, belongs to none. */
function shardsOf(keys: ReadonlySet<string>, state: CheckpointState): Map<number, SealedShard> {
  const shards = new Map<number, SealedShard>()
  if (keys.size === 0) return shards
  for (const shard of state.shards) {
    if (shard.rows > 0 && shard.partitions.some((key) => keys.has(key))) shards.set(shard.shard, shard)
  }
  return shards
}

function sums(keys: ReadonlySet<string>, shards: ReadonlyMap<number, SealedShard>, state: CheckpointState) {
  const sum = { rows: 0, quarantined: 0, bytes: 0 }
  for (const key of keys) {
    const folded = state.partitions.get(key)
    sum.rows += folded?.rows ?? 0
    sum.quarantined += folded?.quarantined ?? 0
  }
  for (const { bytes } of shards.values()) sum.bytes += bytes
  return sum
}
