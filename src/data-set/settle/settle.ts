import {
  ExportError,
  isExportError,
  type NamedPipeline,
  nullIf,
  type OwnedStore,
  placeOf,
  plainError,
  sideBySide,
} from '../../core/index.ts'
import { changedSinceSealed, folderOf, publishSealed, stands } from '../../load/index.ts'
import type { Plan } from '../../pipeline/index.ts'
import {
  bringSuppression,
  type CheckpointState,
  type Journal,
  type JournalEntry,
  type ManifestShard,
  manifestShard,
  type SealedShard,
} from '../../state/index.ts'
import { requireShards, withRows } from '../open/look.ts'
import type { WriteOptions } from '../options.ts'
import { isDone, planOfFile } from '../plan/plan-state.ts'
import { swapRedone } from '../redo/swap-redone.ts'
import { FreeNumbers, rewriteShards, writingOf } from '../rewriting.ts'
import { mark, publishCommitted, removeSealed, unmark } from './publish.ts'
import { bringQuarantine } from './quarantine-files.ts'
import { replaceManifest } from './replace-manifest.ts'
import { bringSummaryPage } from './summary-page.ts'
import { type TableOptions, updateTables } from './update-tables.ts'

export type SettleOptions = TableOptions &
  Pick<WriteOptions, 'stop' | 'version' | 'build'> & {
    /** Called with each shard that is committed here: with partitions exported again, or without rows, if there are none. */
    readonly onWritten?: (shard: ManifestShard) => void
    /** Called when every shard is published, before the manifest tells of the run. */
    readonly onPublished?: () => Promise<void>
  }

/** What is settled. */
type Settling = {
  readonly pipeline: NamedPipeline
  readonly store: OwnedStore
  readonly journal: Journal
  readonly options: SettleOptions
}

/**
 * Nothing is named before it stands under its final name, and nothing is removed that is still named. What stands behind
 * a failed step waits for the next command. Settling twice changes nothing.
 */
export async function settle(
  pipeline: NamedPipeline,
  store: OwnedStore,
  journal: Journal,
  options: SettleOptions,
): Promise<void> {
  const settling = { pipeline, store, journal, options }
  const { state } = journal
  await bringSuppression(store, journal)
  await publishShards(settling)
  const isStanding = await requireStanding(settling)
  const plan = planOfFile(pipeline, state)
  const whole = plan !== null && isStanding && isDone(plan, state)
  if (whole) await fillEmptyDataSet(settling, plan)
  // While shards are there beside those that they replace, rows are there twice.
  if (!whole || state.invalidated.size > 0) await unmark(store)
  await bringQuarantine(store, journal)
  await options.onPublished?.()
  await replaceManifest(pipeline, store, state, plan, options.onLog)
  const failure = await failureOfRemoval(store, state, async () => {
    await updateTables(pipeline, store, journal, options)
    if (isStanding) await removeUnnamed(store, state, options.stop)
  })
  const isClean = failure === null && isStanding
  const isComplete = whole && (isClean || state.invalidated.size === 0)
  if (isComplete) await mark(store)
  await bringSummaryPage(pipeline, store, state, options)
  if (isClean && !state.isSettled) await journal.append([{ kind: 'settled' }])
  await journal.erase()
  if (failure !== null) throw failure
}

/** What is exported again comes first; a run that is stopped leaves it to the next one. @throws ExportError */
async function publishShards({ pipeline, store, journal, options }: Settling): Promise<void> {
  const { stop, onLog, onWritten } = options
  const { write } = writingOf(store, pipeline, journal.state.schemas, options)
  await swapRedone(store, journal, write, stop, onWritten)
  const { published, changed } = await publishCommitted(store, journal.state)
  for (const { path } of published) onLog('info', 'shard published', { event: 'shard.published', path })
  if (changed.length > 0) throw changedSinceSealed(changed[0]!)
}

/**
 * Before every shard stands under its final name nothing is removed or marked. One without rows is made again: nothing is
 * requested for it. @returns false: some do not that are to be replaced by what is exported again
 * @throws ExportError `damaged` when another does not
 */
async function requireStanding(settling: Settling): Promise<boolean> {
  const { store, journal } = settling
  const { state } = journal
  const seen = await requireShards(store, state, undefined, () => unmark(store))
  for (const former of [...state.shards].filter(({ rows }) => rows === 0)) {
    if (await stands(store, former)) continue
    const { path, partitions, schema } = former
    const empty = { folder: placeOf(path).folder, partitions, schema }
    await writeEmpty(settling, empty, (by) => ({ kind: 'swap', shards: [{ of: [former.shard], by }] }))
  }
  return withRows(seen).length === 0
}

/** A scheduled reader needs a file with all columns, those in the folders' names too. */
async function fillEmptyDataSet(settling: Settling, plan: Plan): Promise<void> {
  const { pipeline, journal, options } = settling
  const { extract, load } = pipeline
  const { shards, schemas } = journal.state
  const [first] = shards.length > 0 ? [] : plan.partitions()
  if (first === undefined) return
  const folder = folderOf(extract.resource, first, load.partitionBy)
  const empty = { folder, partitions: [first.key], schema: schemas.length - 1 }
  const shard = await writeEmpty(settling, empty, (shard) => ({ kind: 'seal', ...shard }))
  options.onWritten?.(manifestShard(shard))
}

/** A shard without rows, which this entry brings. */
async function writeEmpty(
  { pipeline, store, journal, options }: Settling,
  { folder, partitions, schema = 0 }: Pick<SealedShard, 'partitions' | 'schema'> & { folder: string },
  entryOf: (shard: SealedShard) => JournalEntry,
): Promise<SealedShard> {
  const { state } = journal
  const identity = { ...new FreeNumbers(state).take(folder, schema), partitions }
  const writing = writingOf(store, pipeline, state.schemas, options)
  const shard = await rewriteShards(store, pipeline, [], identity, writing, null)
  await journal.append([entryOf(shard)])
  await publishSealed(store, shard)
  return shard
}

/** Why files stay that the checkpoint no longer names: the tables could not follow, or one cannot be removed. */
async function failureOfRemoval(
  store: OwnedStore,
  { invalidated }: CheckpointState,
  remove: () => Promise<void>,
): Promise<ExportError | null> {
  try {
    await remove()
    return null
  } catch (error) {
    if (!isExportError(error) || error.kind === 'locked') throw error
    const left: string[] = []
    await sideBySide(invalidated, async (path) => {
      if ((await store.size(path).catch(nullIf())) !== null) left.push(path)
    })
    if (left.length === 0) return error
    const what = `${error.what}. Until then these files stay, although the data set no longer has their rows: ${left.sort().join(', ')}`
    return new ExportError({ ...plainError(error), what, cause: error })
  }
}

export async function removeUnnamed(
  store: OwnedStore,
  state: CheckpointState,
  stop: AbortSignal,
): Promise<void> {
  const failures: unknown[] = []
  await sideBySide(state.invalidated, async (path) => {
    if (stop.aborted) return
    // The others go all the same.
    await store.remove(path).catch((error: unknown) => failures.push(error))
  })
  if (failures.length > 0) throw failures[0]
  if (stop.aborted && state.invalidated.size > 0) throw stopped()
  await removeSealed(store, state)
}

/** Of a command that was stopped before its commit. */
export const UNCHANGED = 'Run it again: nothing was changed.'

/** @param next by default for a change that is committed, and that any command finishes */
export function stopped(
  next = 'Run it again, or any other command that changes the data set: it finishes the work.',
): ExportError {
  return new ExportError({ kind: 'interrupted', what: 'The command was stopped', where: '', next })
}
