import { type Prune, type Store, sideBySide } from '../../core/index.ts'
import { OPEN_FOLDER, openShardPath, QUARANTINE_FOLDER, quarantinePath } from '../../load/index.ts'
import { type CheckpointState, rewriteCheckpoint, splitPath } from '../../state/index.ts'
import type { OldPartitions } from './old-partitions.ts'

/**
 * Journals that partitions are pruned, in one step: from then on no run requests them, no reader of the checkpoint
 * counts on their shards, and the next run that opens the data set removes their files.
 */
export async function recordPrune(
  store: Store,
  state: CheckpointState,
  { partitions, shards }: OldPartitions,
  prune: Prune,
): Promise<void> {
  await rewriteCheckpoint(store, state, {
    partitions: new Set(),
    shards: new Set(shards.keys()),
    chains: new Set(),
    invalidated: [...shards.values()].map(({ path }) => path),
    pruned: { partitions, prune },
  })
}

/** Removes the files of what was invalidated or pruned, with the folders that this leaves empty. */
export async function removePruned(store: Store, state: CheckpointState, stop: AbortSignal): Promise<void> {
  const folders = new Set<string>()
  await sideBySide(state.invalidated, async (path) => {
    stop.throwIfAborted()
    await store.remove(path)
    folders.add(splitPath(path)[0])
  })
  await removeNameless(store, state)
  await sideBySide(folders, async (folder) => {
    // Those of a window, and of a query that had no others; the first is the table's.
    for (let at = folder; at.includes('/'); at = splitPath(at)[0]) await store.removeEmptyFolder(at)
  })
}

/** Removes sealed shards that were never published and that the journal no longer has. */
async function removeNameless(store: Store, state: CheckpointState): Promise<void> {
  const parts = (await store.list(OPEN_FOLDER)).flatMap((name) => /^(\d+)\.part$/.exec(name)?.[1] ?? [])
  if (parts.length === 0) return
  const known = new Set(state.openShards.keys())
  for (const { shard } of state.shards) known.add(shard)
  for (const part of parts) if (!known.has(Number(part))) await store.remove(openShardPath(Number(part)))
}

/** Removes the quarantine files of pruned partitions, which no journal entry vouches for. */
export async function removePrunedQuarantine(store: Store, state: CheckpointState): Promise<void> {
  const names = new Set(await store.list(QUARANTINE_FOLDER))
  if (names.size === 0) return
  for (const [key, record] of state.partitions) {
    if (record.state !== 'pruned') continue
    const path = quarantinePath(key)
    if (names.has(splitPath(path)[1])) await store.remove(path)
  }
}
