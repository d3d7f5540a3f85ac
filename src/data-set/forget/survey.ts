import { ExportError, type FoldedShard, type NamedPipeline, type Store } from '../../core/index.ts'
import { sealedPath } from '../../load/index.ts'
import { type CheckpointState, type OpenLog, type SealedShard, splitPath } from '../../state/index.ts'
import { findRows, type Located } from './finished-shards.ts'
import { findOpenRows } from './open-rows.ts'
import type { People } from './people.ts'
import { itemsOfPeople } from './rejected-items.ts'
import { RemovedRows } from './removed-rows.ts'

/** A finished shard with rows of people. */
export type ShardOfPeople = Located & {
  readonly removed: RemovedRows
  /** Whether it holds what is exported of partitions, while they are exported again. */
  readonly isFormer: boolean
}

/** What a data set holds of people. */
export type Survey = {
  readonly shards: readonly ShardOfPeople[]
  /** Open shards with rows of theirs, in the log. */
  readonly open: readonly FoldedShard[]
  readonly rows: number
  readonly quarantined: number
  /** Whether items of a page that is not committed are in quarantine. */
  readonly isShown: boolean
  /** Queries with rows of theirs. */
  readonly queries: ReadonlySet<string>
}

/** Called before each shard, with its number. */
export type OnShard = (number: number, of: number) => void

/** Finds everything of some people; changes nothing. */
export async function survey(
  store: Store,
  log: Pick<OpenLog, 'read'>,
  pipeline: NamedPipeline,
  state: CheckpointState,
  people: People,
  { stop, onShard }: { readonly stop: AbortSignal; readonly onShard: OnShard },
): Promise<Survey> {
  const shards: ShardOfPeople[] = []
  const removed: RemovedRows[] = []
  const finished = [...state.shards].filter(({ rows }) => rows > 0)
  const held = [...state.held.values()]
  let number = 0
  const find = async (shard: SealedShard, isHeld: boolean): Promise<void> => {
    if (stop.aborted) throw stopped()
    onShard(++number, finished.length + held.length)
    const isFormer = state.redo.shards.has(shard.shard)
    const found = {
      shard,
      path: isHeld ? sealedPath(shard.shard, shard.sha256) : shard.path,
      removed: removedRows(state, shard.partitions, isFormer),
      isFormer,
    }
    await findRows(store, pipeline, found, people, found.removed)
    if (found.removed.total > 0) shards.push(found)
  }
  for (const shard of finished) await find(shard, false)
  for (const shard of held) await find(shard, true)
  const open: FoldedShard[] = []
  for (const shard of state.openShards.values()) {
    const counter = removedRows(state, shard.partitions)
    await findOpenRows(log, pipeline, shard, people, counter)
    if (counter.total > 0) open.push(shard)
    removed.push(counter)
  }
  let [quarantined, isShown] = [0, false]
  for await (const items of itemsOfPeople(store, log, state, people)) {
    quarantined += items.removed
    isShown ||= items.isShown
  }
  const counts = [...shards.map((each) => each.removed), ...removed]
  const rows = counts.reduce((sum, { total }) => sum + total, 0)
  const queries = new Set(counts.flatMap(({ counts }) => [...counts.keys()].map((key) => splitPath(key)[0])))
  return { shards, open, rows, quarantined, isShown, queries }
}

/** A counter of rows of some partitions. @param isFormer of what is exported, while it is exported again */
export function removedRows(
  state: CheckpointState,
  partitions: Iterable<string>,
  isFormer = false,
): RemovedRows {
  return new RemovedRows(partitions, (key) => {
    const folded = state.partitions.get(key)
    return (isFormer ? folded?.former : folded)?.rows ?? 0
  })
}

export function stopped(): ExportError {
  const next = 'Run it again with the same identities: it continues.'
  return new ExportError({ kind: 'interrupted', what: 'The command was stopped', where: '', next })
}
