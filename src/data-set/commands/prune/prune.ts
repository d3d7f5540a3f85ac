import { ExportError, formatInstant, locationOf, type Micros, type Pipeline } from '../../../core/index.ts'
import type { CheckpointState } from '../../../state/index.ts'
import { type Change, NO_CHANGE } from '../../change.ts'
import type { ChangeOptions } from '../../options.ts'
import type { WritableDataSet } from '../../writable-data-set.ts'
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

/** The journal keeps them as pruned: no run requests them again. @throws ExportError `config`; as {@link WritableDataSet.change} */
export async function pruneDataSet(
  dataSet: WritableDataSet,
  before: Micros,
  options: ChangeOptions,
): Promise<PruneResult> {
  const { pipeline, state } = dataSet
  if (pipeline.extract.windows === null)
    throw new ExportError({
      kind: 'config',
      what: 'prune needs windows, and the pipeline has none: the age of rows is not known',
      where: locationOf(pipeline, 'extract.windows'),
      next: 'Export to another load.path with extract.windows and every, or start over with a shorter range and --fresh.',
    })
  // They go, damaged or not.
  const goes = state === null ? [] : oldPartitions(state, before).shards.map(({ shard }) => shard)
  const planned = await dataSet.change({ ...options, goes }, ({ state }) =>
    pruning(pipeline, state, before, options.clock.now()),
  )
  return planned.result
}

function pruning(
  pipeline: Pipeline,
  state: CheckpointState | null,
  before: Micros,
  nowMs: number,
): Change<PruneResult> {
  const old = state === null ? NOTHING : oldPartitions(state, before)
  const result = resultOf(pipeline, before, old)
  const { partitions, rows, quarantined, removed } = result
  if (partitions === 0) return { ...NO_CHANGE, result }
  const pruned = { pruned_at: new Date(nowMs).toISOString(), before: result.before }
  const shards = old.shards.map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
  const entry = { kind: 'prune', ...pruned, partitions, rows, quarantined, removed, shards } as const
  const groups = old.shards.map((shard) => ({ of: [{ shard, path: shard.path }], isEmptied: true }))
  return { ...NO_CHANGE, result, groups, entries: [entry] }
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
