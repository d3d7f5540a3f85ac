import { isExportError, type JournalEntry, type NamedPipeline, type Store } from '../core/index.ts'
import { folderOf } from '../load/index.ts'
import type { Plan } from '../plan/index.ts'
import { type Checkpoint, SUCCESS_PATH } from '../state/index.ts'
import { replaceManifest } from './data-set/replace-manifest.ts'
import { writeReport } from './report/write-report.ts'
import type { Session } from './session/session.ts'
import { withLocation } from './setting/locations.ts'
import type { RunOptions } from './setting/options.ts'

export type Finalization = {
  readonly session: Session
  readonly plan: Plan
  /** Whether everything that the pipeline file plans is exported. */
  readonly whole: boolean
  /** The journal entry of the run; null: it is already written. */
  readonly end: JournalEntry | null
}

/** Finalizes a data set: writes its manifest, its report and, if it is complete, `_SUCCESS`. */
export async function finalizeDataSet(
  pipeline: NamedPipeline,
  store: Store,
  { session, plan, whole, end }: Finalization,
  options: RunOptions,
): Promise<void> {
  const { checkpoint } = session
  if (whole) await fillEmptyDataSet(pipeline, session, plan)
  if (end !== null) await checkpoint.append([end])
  await replaceManifest(pipeline, store, checkpoint.state, options.observer)
  if (whole) await store.writeWhole(SUCCESS_PATH, [])
  await reportOn(pipeline, store, checkpoint, options)
}

/**
 * Gives a data set without rows one shard without rows, in the folder of its first partition: a scheduled reader
 * needs something to read, with all columns, those of the folders' names too.
 */
async function fillEmptyDataSet(
  { extract, load }: NamedPipeline,
  { checkpoint, shards }: Session,
  plan: Plan,
): Promise<void> {
  if (checkpoint.state.shards.length > 0) return
  for (const partition of plan.partitions()) {
    await shards.sealEmpty(folderOf(extract.resource, partition, load.partitionBy), partition.key)
    return
  }
}

/** Everything that counts is on disk by then, so a report that can't be written is no failure of the run. */
async function reportOn(
  pipeline: NamedPipeline,
  store: Store,
  checkpoint: Checkpoint,
  { clock, version, observer, stop }: RunOptions,
): Promise<void> {
  try {
    const context = { nowMs: clock.now(), version, hurry: stop.aborted }
    await writeReport(pipeline, store, checkpoint.state, context, (fact) => checkpoint.append([fact]))
  } catch (error) {
    if (!isExportError(error)) throw error
    observer.log('warn', `the report could not be written: ${withLocation(pipeline, error).message}`)
  }
}
