import type { ForgetEntry, NamedPipeline, OwnedStore, ShardIdentity } from '../../core/index.ts'
import { rowGroupRows, type ShardCoder, shardExtension } from '../../load/index.ts'
import { type CheckpointState, type SealedShard, splitPath } from '../../state/index.ts'
import { encodePlan } from '../encode-plan.ts'
import { rewriteWithout } from './finished-shards.ts'
import type { ForgetOptions } from './forget.ts'
import type { People } from './people.ts'
import { type ShardOfPeople, stopped } from './survey.ts'

/** Writes shards anew without the rows of people, sealed, under names that were never used. Nothing names them yet. */
export async function rewriteShards(
  store: OwnedStore,
  pipeline: NamedPipeline,
  state: CheckpointState,
  shards: readonly ShardOfPeople[],
  people: People,
  options: Pick<ForgetOptions, 'stop' | 'onShard' | 'version' | 'build'>,
): Promise<readonly { readonly shard: number; readonly by: SealedShard | null }[]> {
  if (shards.length === 0) return []
  const { stop, onShard } = options
  const { format } = pipeline.load
  const coder = await coderOf(pipeline, options)
  const how = { coder, extension: shardExtension(format), rowGroupRows: rowGroupRows(format) }
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
    const by = isKept
      ? await rewriteWithout(store, pipeline, each, people, numbers.take(splitPath(shard.path)[0]), how)
      : null
    replaced.push({ shard: shard.shard, by })
  }
  return replaced
}

/** Loaded only here: most commands never encode in this thread. */
export async function coderOf(
  pipeline: NamedPipeline,
  options: Parameters<typeof encodePlan>[1],
): Promise<ShardCoder> {
  const { inlineCoder } = await import('../inline-coder.ts')
  return inlineCoder(encodePlan(pipeline, options))
}

export function countsOf(
  shards: readonly ShardOfPeople[],
): NonNullable<ForgetEntry['changes']>['partitions'] {
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
