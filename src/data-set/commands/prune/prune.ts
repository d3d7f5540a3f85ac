import { ExportError, formatInstant, locationOf, type Micros, type Pipeline } from '../../../core/index.ts'
import type { CheckpointState } from '../../../state/index.ts'
import type { ChangeOptions } from '../../hold.ts'
import { namePipeline } from '../../queries.ts'
import { noSwap, type Swap, swapShards } from '../../swap.ts'
import { type KeptPartition, type OldPartitions, oldPartitions } from './old-partitions.ts'

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

/** The journal keeps them as pruned: no run requests them again. @throws ExportError `config`; as `swapShards` */
export function pruneDataSet(given: Pipeline, before: Micros, options: ChangeOptions): Promise<PruneResult> {
  if (given.extract.windows === null)
    throw new ExportError({
      kind: 'config',
      what: 'prune needs windows, and the pipeline has none: the age of rows is not known',
      where: locationOf(given, 'extract.windows'),
      next: 'Export to another load.path with extract.windows and every, or start over with a shorter range and --fresh.',
    })
  const pipeline = namePipeline(given, options.maskKey)
  return swapShards(pipeline, options, {
    plan: (state) => pruning(pipeline, state, before, options.clock.now()),
    // The old shards go, damaged or not.
    goes: (state) => oldPartitions(state, before).shards.map(({ shard }) => shard),
  })
}

function pruning(
  pipeline: Pipeline,
  state: CheckpointState | null,
  before: Micros,
  nowMs: number,
): Swap<PruneResult> {
  const old = state === null ? NOTHING : oldPartitions(state, before)
  const result = resultOf(pipeline, before, old)
  const { partitions, rows, quarantined, removed } = result
  if (partitions === 0) return noSwap(result)
  const pruned = { pruned_at: new Date(nowMs).toISOString(), before: result.before }
  const shards = old.shards.map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
  const entry = { kind: 'prune', ...pruned, partitions, rows, quarantined, removed, shards } as const
  const groups = old.shards.map((shard) => ({ of: [{ shard, path: shard.path }], isEmptied: true }))
  return { ...noSwap(result), groups, entries: [entry] }
}

const NOTHING: OldPartitions = { removed: [], shards: [], kept: [] }

function resultOf({ name }: Pipeline, before: Micros, { removed, shards, kept }: OldPartitions): PruneResult {
  return {
    pipeline: name,
    before: formatInstant(before),
    partitions: removed.length,
    shards: shards.length,
    rows: removed.reduce((sum, { rows }) => sum + rows, 0),
    quarantined: removed.reduce((sum, { quarantined }) => sum + quarantined, 0),
    bytes: shards.reduce((sum, { bytes }) => sum + bytes, 0),
    removed,
    kept,
  }
}
