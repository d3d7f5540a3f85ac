import {
  ExportError,
  formatInstant,
  type Micros,
  type NamedPipeline,
  type Pipeline,
} from '../../core/index.ts'
import type { CheckpointState } from '../../state/index.ts'
import { type ChangeOptions, changeDataSet, readChangeable } from '../change.ts'
import { readState } from '../find-state.ts'
import { namingLocations, openDataSet } from '../open-data-set.ts'
import { namePipeline } from '../queries.ts'
import { type Change, NO_CHANGE } from '../recover.ts'
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
  /** The partitions that are removed, by key. */
  readonly removed: readonly {
    readonly partition: string
    readonly rows: number
    readonly quarantined: number
  }[]
  /** Partitions that are old enough but stay. */
  readonly kept: readonly KeptPartition[]
}

/**
 * Reports what `pruneDataSet` would remove; changes nothing. Works during a run.
 * @throws ExportError `config` when the pipeline has no windows, or is not the one that the data set belongs to
 */
export async function planPruning(pipeline: Pipeline, before: Micros): Promise<PruneResult> {
  requireWindows(pipeline)
  return namingLocations(pipeline, async () => {
    const state = await readChangeable(pipeline, openDataSet(pipeline))
    return resultOf(pipeline, before, state === null ? NOTHING : oldPartitions(state, before))
  })
}

/**
 * Removes the partitions whose windows ended by an instant: shards, quarantine files and their entries in the manifest.
 * The journal keeps them as pruned, so that no run requests them again. Then the data set is settled.
 * @throws ExportError `config` as above, `locked` when a run holds the data set
 */
export function pruneDataSet(given: Pipeline, before: Micros, options: ChangeOptions): Promise<PruneResult> {
  requireWindows(given)
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    // The lock would create the folder, also if there is no data set.
    const isThere = (await readState(openDataSet(pipeline))) !== null
    return isThere ? prune(pipeline, before, options) : planPruning(pipeline, before)
  })
}

function prune(pipeline: NamedPipeline, before: Micros, options: ChangeOptions): Promise<PruneResult> {
  const pruned_at = new Date(options.clock.now()).toISOString()
  let done = resultOf(pipeline, before, NOTHING)
  const first = (state: CheckpointState): Change => {
    const old = oldPartitions(state, before)
    done = resultOf(pipeline, before, old)
    return pruneChange(done, old, pruned_at)
  }
  const result = async (): Promise<PruneResult> => done
  return changeDataSet(pipeline, options, { first, change: result, begin: result })
}

/** The old shards go, damaged or not. */
function pruneChange(
  { before, partitions, rows, quarantined, removed }: PruneResult,
  { shards }: OldPartitions,
  pruned_at: string,
): Change {
  if (partitions === 0) return NO_CHANGE
  const gone = shards.map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
  const what = { partitions, rows, quarantined, removed, shards: gone }
  return {
    entries: [{ kind: 'prune', pruned_at, before, ...what }],
    goes: shards.map(({ shard }) => shard),
  }
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

function requireWindows({ extract, file }: Pipeline): void {
  if (extract.windows !== null) return
  throw new ExportError({
    kind: 'config',
    what: 'prune needs windows, and the pipeline has none: the age of rows is not known',
    where: file,
    next: 'Export to another load.path with extract.windows and every, or start over with a shorter range and --fresh.',
  })
}
