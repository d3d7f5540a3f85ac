import type { OwnedStore } from '../../core/index.ts'
import { changedSinceSealed, isAsSealed } from '../../load/index.ts'
import { type CheckpointState, isOver, type Journal, type SealedShard } from '../../state/index.ts'
import { unmark } from '../settle/success-mark.ts'
import { invalidationOf, redoEntry } from './invalidate.ts'

/**
 * What is not complete again stays as it was, with all that shares a shard with it.
 * @throws ExportError `damaged` when new shards are no longer what was written; they will be exported once more
 */
export async function replaceRedone(store: OwnedStore, journal: Journal): Promise<void> {
  const { state } = journal
  if (state.redo.shards.size + state.redo.partitions.size === 0) return
  const { partitions, shards, publish } = replacementOf(state)
  if (partitions.length + shards.length === 0) return
  const lost = new Set<number>()
  for (const shard of publish) if (!(await isAsSealed(store, shard))) lost.add(shard.shard)
  if (lost.size > 0) {
    await journal.append([redoEntry(invalidationOf(state, { partitions: [], shards: lost }))])
    throw changedSinceSealed(
      publish.find(({ shard }) => lost.has(shard))!,
      'Run again: its partitions are exported once more; the former shards stay until then.',
    )
  }
  await unmark(store)
  await journal.append([{ kind: 'replaced', partitions, shards }])
}

/** Partitions whose new rows are all in sealed shards, without those that share a shard with others. */
function replacementOf(state: CheckpointState) {
  const { redo } = state
  const waiting = new Set<string>()
  for (const [key, again] of redo.partitions) if (again === null || !isOver(again)) waiting.add(key)
  for (const { partitions } of state.openShards.values()) for (const key of partitions) waiting.add(key)
  const old = [...state.shards].filter(({ shard }) => redo.shards.has(shard))
  const waits = ({ partitions }: SealedShard): boolean =>
    partitions.some((key) => waiting.has(key) && redo.partitions.has(key))
  for (let size = -1; size < waiting.size; ) {
    size = waiting.size
    for (const shard of [...old, ...state.redo.sealed.values()])
      if (waits(shard)) for (const key of shard.partitions) waiting.add(key)
  }
  return {
    partitions: [...redo.partitions.keys()].filter((key) => !waiting.has(key)),
    shards: old.filter((shard) => !waits(shard)).map(({ shard }) => shard),
    publish: [...state.redo.sealed.values()].filter((shard) => !waits(shard)),
  }
}
