import { ExportError, type Store } from '../core/index.ts'
import { openShardPath } from '../load/index.ts'
import { type CheckpointState, rewriteCheckpoint } from '../state/index.ts'

/**
 * Brings the data set in line with its checkpoint: gives shards that are whole their final names, where a
 * crash came in between, and makes sure that every one is there at its full length.
 * @throws ExportError `damaged` when one is missing or short
 */
export async function settleShards(store: Store, state: CheckpointState): Promise<void> {
  for (const { shard, path, bytes } of state.shards) {
    const size = await store.size(path)
    if (size === bytes) continue
    if (size === null && (await store.size(openShardPath(shard))) === bytes) {
      await store.publish(openShardPath(shard), path)
      continue
    }
    throw new ExportError(
      'damaged',
      size === null
        ? 'A finished shard is missing'
        : `A finished shard holds ${size} bytes instead of ${bytes}`,
      path,
      'Put it back as it was (rows already paid for are in it), or start over with --fresh; nothing was changed.',
    )
  }
}

/**
 * Goes back to before the pages whose rows did not survive in an open shard: they, and what came after them
 * in their chains, are asked for again.
 * @param intact number of intact pages by shard
 * @returns how many pages were given up
 */
export async function rollBack(
  store: Store,
  state: CheckpointState,
  intact: ReadonlyMap<number, number>,
): Promise<number> {
  const seen = new Map<number, number>()
  const firstLostGeneration = new Map<number, number>()
  for (const [shard, pages] of intact) {
    const lost = state.openShards.get(shard)?.pages[pages]
    if (lost !== undefined) firstLostGeneration.set(shard, lost.generation)
  }
  const brokenChains = new Set<string>()
  let given = 0
  await rewriteCheckpoint(store, (line) => {
    if (line.kind === 'chunk') {
      return line.generation >= (firstLostGeneration.get(line.shard) ?? Number.POSITIVE_INFINITY)
        ? null
        : line
    }
    if (line.kind === 'restart' || line.kind === 'failed')
      return brokenChains.has(line.partition) ? null : line
    if (line.kind !== 'page') return line
    if (line.shard !== undefined) {
      const index = seen.get(line.shard) ?? 0
      seen.set(line.shard, index + 1)
      if (index >= (intact.get(line.shard) ?? Number.POSITIVE_INFINITY)) brokenChains.add(line.partition)
    }
    if (!brokenChains.has(line.partition)) return line
    given++
    return null
  })
  return given
}
