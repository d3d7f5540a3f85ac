import type { NamedPipeline, OwnedStore } from '../../core/index.ts'
import type { RowValue } from '../../rows/index.ts'
import type { ForgetEntry } from '../../state/index.ts'
import { type CheckpointState, type SealedShard, splitPath } from '../../state/index.ts'
import type { ChangeOptions } from '../change.ts'
import { coderOf, FreeNumbers, rewriteShards } from '../rewriting.ts'
import { stopped } from '../settle.ts'
import type { People } from './people.ts'
import { AGAIN, type OnShard, type ShardOfPeople } from './survey.ts'

/** Writes shards anew without the rows of people, sealed, under names that were never used. Nothing names them yet. */
export async function rewriteWithout(
  store: OwnedStore,
  pipeline: NamedPipeline,
  state: CheckpointState,
  shards: readonly ShardOfPeople[],
  people: People,
  options: Pick<ChangeOptions, 'stop' | 'version' | 'build'> & { readonly onShard: OnShard },
): Promise<readonly { readonly shard: number; readonly by: SealedShard | null }[]> {
  if (shards.length === 0) return []
  const { stop, onShard } = options
  const coder = await coderOf(pipeline, options)
  const numbers = new FreeNumbers(state)
  const isLeftOut = (identity: RowValue): boolean => people.has(identity)
  const replaced: { shard: number; by: SealedShard | null }[] = []
  let left = state.shards.length
  for (const [index, each] of shards.entries()) {
    if (stop.aborted) throw stopped(AGAIN)
    onShard(index + 1, shards.length)
    const { shard } = each
    const isHeld = state.held.has(shard.shard)
    const isEmptied = each.removed.total === shard.rows
    // The last shard of a data set stays, without rows: readers get the columns from it.
    const isKept = !isEmptied || (!isHeld && left === 1)
    if (!isKept && !isHeld) left--
    const by = isKept
      ? await rewriteShards(store, pipeline, [each], numbers.take(splitPath(shard.path)[0]), coder, isLeftOut)
      : null
    replaced.push({ shard: shard.shard, by })
  }
  return replaced
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
