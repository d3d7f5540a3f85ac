import {
  isExportError,
  type NamedPipeline,
  type PartitionCounts,
  type Pipeline,
  partitionCounts,
  type Store,
} from '../../core/index.ts'
import {
  type CheckpointState,
  checkMaskKey,
  exportedOf,
  readCheckpoint,
  SUCCESS_PATH,
} from '../../state/index.ts'
import { namePipeline } from '../queries.ts'
import { namingLocations, openDataSet } from './open-data-set.ts'
import { countPartitions, earlyPartitions, planAsOfLastRun } from './plan-state.ts'

/** Whether a data set holds everything that its pipeline file plans. The files alone cannot show this. */
export type Completeness = {
  readonly complete: boolean
  /** Of the file's plan as of the last run; null: the data set was moved without its state, or its names need a key. */
  readonly partitions: PartitionCounts | null
  /** Partitions that are to be exported again; until then their former rows stay. */
  readonly redo: number
}

/**
 * Reads whether a data set is complete; changes nothing and takes no lock.
 * @param maskKey for queries that are named by digests; null: there is none, or it is not known
 * @throws ExportError `config` when the data set was begun with another mask key
 */
export function readCompleteness(pipeline: Pipeline, maskKey: Uint8Array | null): Promise<Completeness> {
  return namingLocations(pipeline, async () => {
    const store = openDataSet(pipeline)
    return completenessOf(pipeline, maskKey, store, await readableCheckpoint(store))
  })
}

/** null also if it is damaged, which others report. */
async function readableCheckpoint(store: Store): Promise<CheckpointState | null> {
  try {
    return await readCheckpoint(store)
  } catch (error) {
    if (isExportError(error, 'damaged')) return null
    throw error
  }
}

/**
 * @param state null: the data set was moved without it
 * @throws ExportError `config` when the data set was begun with another mask key: under this one its queries have other
 *   names, so all would count as missing
 */
export async function completenessOf(
  pipeline: Pipeline,
  maskKey: Uint8Array | null,
  store: Store,
  state: CheckpointState | null,
  nowMs = Date.now(),
): Promise<Completeness> {
  checkMaskKey(state?.header, maskKey, pipeline)
  const isMarked = (await store.size(SUCCESS_PATH)) !== null
  const partitions = state === null ? null : partitionsOf(pipeline, maskKey, state, nowMs)
  return { complete: isComplete(isMarked, partitions), partitions, redo: state?.redo.partitions ?? 0 }
}

/** @param isMarked whether the data set has `_SUCCESS` @param partitions of the file's plan; null: not known */
export function isComplete(
  isMarked: boolean,
  partitions: Pick<PartitionCounts, 'total' | 'done'> | null,
): boolean {
  return isMarked && (partitions === null || partitions.done === partitions.total)
}

function partitionsOf(
  given: Pipeline,
  maskKey: Uint8Array | null,
  state: CheckpointState,
  nowMs: number,
): PartitionCounts | null {
  const pipeline = withNames(given, maskKey)
  const plan = pipeline === null ? null : planAsOfLastRun(pipeline, state)
  if (pipeline === null || plan === null) return null
  const { total, done, failed } = countPartitions(pipeline, plan, state, exportedOf)
  // Planned by the clock of the last run, which may have been the wrong one.
  const early = new Set(earlyPartitions(pipeline, nowMs, state))
  let counted = 0
  if (early.size > 0) for (const { key } of plan.partitions()) if (early.has(key)) counted++
  return partitionCounts(total + early.size - counted, { done: done - counted, failed })
}

/** null: the names of queries need a key. */
export function withNames(pipeline: Pipeline, maskKey: Uint8Array | null): NamedPipeline | null {
  try {
    return namePipeline(pipeline, maskKey)
  } catch (error) {
    if (isExportError(error, 'config')) return null
    throw error
  }
}
