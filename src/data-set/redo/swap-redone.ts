import { type OwnedStore, sideBySide } from '../../core/index.ts'
import { type ShardWriter, writeOpen } from '../../load/index.ts'
import {
  type CheckpointState,
  type FoldedShard,
  isOver,
  isRedone,
  type Journal,
  type ManifestShard,
  manifestShard,
  type SwapEntry,
} from '../../state/index.ts'
import { unmark } from '../settle/publish.ts'

/**
 * Partitions that are complete again get their new rows, which wait in the log, in one commit. What is not complete stays
 * as it was, with all that shares a shard with it.
 */
export async function swapRedone(
  store: OwnedStore,
  journal: Journal,
  write: ShardWriter,
  stop: AbortSignal,
  onWritten: (shard: ManifestShard) => void = () => {},
): Promise<void> {
  const { state } = journal
  if (state.redo.partitions.size === 0) return
  const { partitions, former, open } = completeAgain(state)
  if (partitions.length === 0) return
  const come: SwapEntry['shards'][number][] = []
  for (const some of together(open)) {
    if (stop.aborted) return
    await sideBySide(some, async (shard) => {
      come.push({ of: [], by: await writeOpen(write, journal, shard) })
    })
  }
  await unmark(store)
  const goes = { of: former.map(({ shard }) => shard), by: null }
  await journal.append([{ kind: 'swap', shards: [goes, ...come], partitions }])
  for (const { by } of come) onWritten(manifestShard(by!))
}

/** Shards that are written side by side: with as many rows as the largest, and no more than keep a store busy. */
function* together(open: readonly FoldedShard[]): Generator<readonly FoldedShard[]> {
  const rowsOf = ({ batches }: FoldedShard): number => batches.reduce((sum, { rows }) => sum + rows, 0)
  const most = open.reduce((most, shard) => Math.max(most, rowsOf(shard)), 0)
  let some: FoldedShard[] = []
  let total = 0
  for (const shard of open) {
    const rows = rowsOf(shard)
    if (total + rows > most) {
      yield some
      some = []
      total = 0
    }
    some.push(shard)
    total += rows
  }
  yield some
}

function completeAgain(state: CheckpointState) {
  const waiting = new Set<string>()
  for (const [key, again] of state.redo.partitions) if (again === null || !isOver(again)) waiting.add(key)
  const shards = [...state.shards, ...state.openShards.values()].filter((shard) => isRedone(state, shard))
  const waits = ({ partitions }: { readonly partitions: Iterable<string> }): boolean =>
    [...partitions].some((key) => waiting.has(key))
  for (let size = -1; size < waiting.size; ) {
    size = waiting.size
    for (const shard of shards)
      if (waits(shard))
        for (const key of shard.partitions) if (state.redo.partitions.has(key)) waiting.add(key)
  }
  return {
    partitions: [...state.redo.partitions.keys()].filter((key) => !waiting.has(key)),
    former: [...state.shards].filter((shard) => isRedone(state, shard) && !waits(shard)),
    open: [...state.openShards.values()].filter((shard) => isRedone(state, shard) && !waits(shard)),
  }
}
