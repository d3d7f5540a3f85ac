import {
  ExportError,
  isExportError,
  type NamedPipeline,
  type OwnedStore,
  plainError,
  SUMMARY_PAGE_PATH,
  sideBySide,
} from '../core/index.ts'
import { changedSinceSealed, QUARANTINE_FOLDER, quarantinePath } from '../load/index.ts'
import {
  type CheckpointState,
  type ManifestShard,
  type OpenLog,
  SUCCESS_PATH,
  splitPath,
} from '../state/index.ts'
import { replaceManifest } from './files.ts'
import { fillEmptyDataSet } from './fill-empty-data-set.ts'
import type { DataSetOptions } from './options.ts'
import { isWhole } from './plan-state.ts'
import { publishLeft, removeSealed, unmark } from './publish.ts'
import { Quarantine } from './quarantine-files.ts'
import { replaceRedone } from './redo/replace.ts'
import { tryToWriteSummaryPage } from './summary-page/write-summary-page.ts'
import { bringPeople } from './suppression.ts'
import { updateTables } from './table-formats.ts'

export type SettleOptions = Pick<DataSetOptions, 'clock' | 'stop' | 'onLog' | 'version' | 'build'> & {
  /** Called with the shard without rows of a data set that has none. */
  readonly onFilled?: (shard: ManifestShard) => void
  /** The run that changed the data set, for the snapshots of tables; default: another command did. */
  readonly runId?: string
}

/**
 * Brings everything that readers see in line with the checkpoint, after a run, another change, or the crash of one.
 * Nothing is named before it stands under its final name, and nothing is removed that is still named. What stands behind
 * a failed step waits for the next command. Settling twice changes nothing.
 * @throws ExportError of the step that failed
 */
export async function settle(
  pipeline: NamedPipeline,
  store: OwnedStore,
  checkpoint: OpenLog,
  options: SettleOptions,
): Promise<void> {
  const { state } = checkpoint
  await bringPeople(store, state)
  await publish(store, checkpoint, options)
  const whole = isWhole(pipeline, state)
  if (whole) await fillEmptyDataSet(pipeline, store, checkpoint, options)
  // While shards are there beside those that they replace, rows are there twice.
  if (!whole || state.invalidated.size > 0) await unmark(store)
  const quarantine = await Quarantine.open(store, checkpoint, pipeline.transform.onInvalid)
  await quarantine.write()
  const isChanged = await replaceManifest(pipeline, store, state, options.onLog)
  const unfollowed = await tablesFailure(pipeline, store, state, options)
  const isClean = unfollowed === null && (await removeUnnamed(store, state, options.stop))
  const isMarked = (await store.size(SUCCESS_PATH)) !== null
  const isComplete = whole && (isClean || state.invalidated.size === 0)
  if (isComplete && !isMarked) await store.replace(SUCCESS_PATH, [])
  // It says whether there is `_SUCCESS`.
  if (isChanged || isComplete !== isMarked || (await store.size(SUMMARY_PAGE_PATH)) === null)
    await tryToWriteSummaryPage(pipeline, store, options)
  if (isClean && !state.isSettled) await checkpoint.append([{ kind: 'settled' }])
  await checkpoint.compact()
  if (unfollowed !== null) throw unfollowed
}

/**
 * Gives every shard of the checkpoint its final name, those first that replace others. A run that is stopped leaves
 * these to the next one.
 * @throws ExportError when a shard cannot be published, `damaged` when it is no longer what was sealed
 */
export async function publish(
  store: OwnedStore,
  checkpoint: OpenLog,
  { stop, onLog }: Pick<SettleOptions, 'stop' | 'onLog'>,
): Promise<void> {
  if (!stop.aborted) await replaceRedone(store, checkpoint)
  const { published, changed } = await publishLeft(store, checkpoint.state)
  for (const { path } of published) onLog('info', 'shard published', { event: 'shard.published', path })
  if (changed.length > 0) throw changedSinceSealed(changed[0]!)
}

/** Why the tables could not follow. The files that they name stay then. */
async function tablesFailure(
  pipeline: NamedPipeline,
  store: OwnedStore,
  { invalidated }: CheckpointState,
  options: SettleOptions,
): Promise<ExportError | null> {
  try {
    await updateTables(pipeline, store, options)
    return null
  } catch (error) {
    if (!isExportError(error) || error.kind === 'locked') throw error
    if (invalidated.size === 0) return error
    const what = `${error.what}. Until then these files stay, although the data set no longer has their rows: ${[...invalidated].join(', ')}`
    return new ExportError({ ...plainError(error), what, cause: error })
  }
}

/** Removes every file of ours that the checkpoint no longer names. @returns whether all are gone */
export async function removeUnnamed(
  store: OwnedStore,
  state: CheckpointState,
  stop: AbortSignal | null = null,
): Promise<boolean> {
  let isDone = true
  await sideBySide(state.invalidated, async (path) => {
    if (stop?.aborted === true) isDone = false
    else await store.remove(path)
  })
  await removeSealed(store, state)
  const names = new Set(await store.list(QUARANTINE_FOLDER))
  for (const [key, { state: now }] of names.size === 0 ? [] : state.partitions) {
    const path = quarantinePath(key)
    if (now === 'pruned' && names.has(splitPath(path)[1])) await store.remove(path)
  }
  return isDone
}
