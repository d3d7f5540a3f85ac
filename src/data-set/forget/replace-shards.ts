import type { ForgottenEntry, NamedPipeline, OwnedStore, ShardIdentity } from '../../core/index.ts'
import { publishSealed, type ShardCoder } from '../../load/index.ts'
import { type CheckpointState, type OpenLog, type SealedShard, splitPath } from '../../state/index.ts'
import { rewriteWithout } from './finished-shards.ts'
import type { People } from './people.ts'
import { type OnShard, type ShardOfPeople, stopped } from './survey.ts'

type Replacing = {
  readonly coder: ShardCoder
  readonly extension: string
  readonly rowGroupRows: number
  readonly stop: AbortSignal
  /** Called once all are written, before they replace the others. */
  readonly onReady: () => Promise<void>
  readonly onShard: OnShard
}

/**
 * Writes shards anew without the rows of people, under names that were never used, and commits all of them in one
 * entry. Until then nothing has changed; from then on no reader of the checkpoint finds the former ones.
 */
export async function replaceShards(
  store: OwnedStore,
  pipeline: NamedPipeline,
  checkpoint: OpenLog,
  shards: readonly ShardOfPeople[],
  people: People,
  { stop, onShard, onReady, ...how }: Replacing,
): Promise<void> {
  if (shards.length === 0) return
  const { state } = checkpoint
  const numbers = new FreeNumbers(state)
  const replaced: { shard: number; by: SealedShard | null }[] = []
  let left = state.shards.length
  for (const [index, each] of shards.entries()) {
    if (stop.aborted) throw stopped()
    onShard(index + 1, shards.length)
    const { shard } = each
    const isHeld = state.held.has(shard.shard)
    const isEmptied = each.removed.total === shard.rows
    // The last shard of a data set stays, without rows: readers get the columns from it.
    const isKept = !isEmptied || (!isHeld && left === 1)
    if (!isKept && !isHeld) left--
    let by: SealedShard | null = null
    if (isKept) {
      const identity = numbers.take(splitPath(shard.path)[0])
      by = await rewriteWithout(store, pipeline, each, people, identity, how)
    }
    replaced.push({ shard: shard.shard, by })
  }
  await onReady()
  await checkpoint.append([{ kind: 'forgotten', partitions: countsOf(shards), shards: replaced }])
  for (const { by } of replaced) {
    // What is exported again is published when it is complete.
    if (by !== null && !checkpoint.state.held.has(by.shard)) await publishSealed(store, by)
  }
}

function countsOf(shards: readonly ShardOfPeople[]): ForgottenEntry['partitions'] {
  return shards.flatMap(({ removed, isFormer }) =>
    [...removed.counts].map(([partition, rows]) => ({
      partition,
      rows,
      quarantined: 0,
      ...(isFormer ? ({ former: true } as const) : {}),
    })),
  )
}

/** Numbers of shards and parts that no other shard has had. */
class FreeNumbers {
  readonly #state: CheckpointState
  readonly #parts = new Map<string, number>()
  #shard: number

  constructor(state: CheckpointState) {
    this.#state = state
    this.#shard = state.nextShard
  }

  take(folder: string): ShardIdentity {
    const part = this.#parts.get(folder) ?? this.#state.partsOf.get(folder) ?? 0
    this.#parts.set(folder, part + 1)
    return { shard: this.#shard++, folder, part }
  }
}
