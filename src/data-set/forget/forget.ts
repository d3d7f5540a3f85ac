import {
  type BlobRef,
  ExportError,
  isExportError,
  type NamedPipeline,
  nullIf,
  type OwnedStore,
  type Pipeline,
  plainError,
  type Store,
} from '../../core/index.ts'
import { ORPHANS, QUARANTINE_FOLDER, quarantinePath, rowGroupRows, shardExtension } from '../../load/index.ts'
import { requireTablesToFollow } from '../../open-tables/index.ts'
import {
  type CheckpointState,
  checkMaskKey,
  newList,
  type OpenLog,
  readBlob,
  readManifest,
  type StoredList,
  SUCCESS_PATH,
  splitPath,
  withDigests,
  withKey,
} from '../../state/index.ts'
import { encodePlan } from '../encode-plan.ts'
import { refuseLinks, replaceManifest } from '../files.ts'
import { readBegunCheckpoint } from '../open-checkpoint.ts'
import { holdDataSet, namingLocations, openDataSet } from '../open-data-set.ts'
import { isExported, planAsOfLastRun } from '../plan-state.ts'
import type { PruneOptions } from '../prune/prune.ts'
import { Quarantine } from '../quarantine-files.ts'
import { namePipeline } from '../queries.ts'
import { type Owner, openSettledCheckpoint } from '../recover.ts'
import { removeReplaced } from '../redo/replace.ts'
import { tryToWriteSummaryPage } from '../summary-page/write-summary-page.ts'
import { readForgotten, requireForgotten, writeForgotten } from '../suppression.ts'
import { updateTables } from '../table-formats.ts'
import { queriesOfPeople } from './named-queries.ts'
import { forgetOpenRows } from './open-rows.ts'
import { People } from './people.ts'
import { forgetItems, itemsOfPeople } from './rejected-items.ts'
import { replaceShards } from './replace-shards.ts'
import { type OnShard, removedRows, type Survey, survey } from './survey.ts'

export type ForgetResult = {
  readonly pipeline: string
  /** Different identities that were given. */
  readonly identities: number
  readonly rows: number
  /** Finished shards with rows of theirs. */
  readonly shards: number
  readonly quarantined: number
  /** What stays of them, and the way out. */
  readonly notes: readonly string[]
}

export type ForgetOptions = PruneOptions & {
  /** Called before each shard that is read, and before each that is written anew. */
  readonly onShard: OnShard
}

/**
 * Reports what `forgetPeople` would remove; changes nothing. Works during a run.
 * @throws ExportError as that
 */
export function planForgetting(
  given: Pipeline,
  identities: readonly string[],
  options: ForgetOptions,
): Promise<ForgetResult> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const people = People.of(identities, pipeline, options.maskKey)
    const store = openDataSet(pipeline)
    const state = await begun(pipeline, store, options)
    if (state === null) return nothingOf(pipeline, people)
    await requireTablesToFollow(store, { ...pipeline.load.tables, dataSetId: state.header.data_set_id })
    const log = { read: (ref: BlobRef) => readBlob(store, ref) }
    const found = await survey(store, log, pipeline, state, people, options)
    return resultOf(pipeline, store, state, people, found)
  })
}

/**
 * Takes people out of a data set, and keeps them out; before its first run, out of what that exports. Their digests are written first: from then on no run exports them.
 * Then the shards with rows of theirs are written anew, without them, and replace the former ones in one journal entry;
 * rows that wait in the log, and rejected items, are committed anew likewise. Manifest and summary page follow, files go
 * last. After a crash, the same command finishes this.
 * @throws ExportError `config` when nobody can be found in it, or the mask key is another one; `locked` when a run holds
 *   the data set
 */
export function forgetPeople(
  given: Pipeline,
  identities: readonly string[],
  options: ForgetOptions,
): Promise<ForgetResult> {
  const { clock, stop, onLog, maskKey } = options
  const pipeline = namePipeline(given, maskKey)
  const warn = (message: string): void => onLog('warn', message)
  return namingLocations(pipeline, async () => {
    const people = People.of(identities, pipeline, maskKey)
    await begun(pipeline, openDataSet(pipeline), options)
    return holdDataSet(pipeline, { clock, stop, warn }, (owner) => forget(pipeline, owner, people, options))
  })
}

/** Nothing is exported yet: the first run keeps these people out. */
function nothingOf(pipeline: Pipeline, people: People): ForgetResult {
  const { name } = pipeline
  return { pipeline: name, identities: people.count, rows: 0, shards: 0, quarantined: 0, notes: [] }
}

async function begun(
  pipeline: NamedPipeline,
  store: Store,
  { maskKey }: ForgetOptions,
): Promise<CheckpointState | null> {
  const state = await readBegunCheckpoint(pipeline, store)
  checkMaskKey(state?.header, maskKey, pipeline)
  return state
}

async function forget(
  pipeline: NamedPipeline,
  owner: Owner,
  people: People,
  options: ForgetOptions,
): Promise<ForgetResult> {
  const { store } = owner
  const { clock, onLog, maskKey } = options
  await refuseLinks(store)
  const begunBefore = await begun(pipeline, store, options)
  if (begunBefore === null) {
    await keepOut(store, (await readForgotten(store)) ?? [], people, maskKey)
    return nothingOf(pipeline, people)
  }
  const { data_set_id: dataSetId } = begunBefore.header
  await requireTablesToFollow(store, { ...pipeline.load.tables, dataSetId })
  const checkpoint = await openSettledCheckpoint(owner, begunBefore.header, onLog)
  try {
    const { state } = checkpoint
    const before = state.position.sequence
    const lists = await readForgotten(store)
    requireForgotten(lists, state)
    // First: whatever happens from here on, no run writes anything of theirs.
    const isNew = await keepOut(store, lists ?? [], people, maskKey)
    const found = await survey(store, checkpoint, pipeline, state, people, options)
    const result = await resultOf(pipeline, store, state, people, found)
    if (isNew || found.rows > 0 || found.quarantined > 0 || found.isShown) {
      const at = new Date(clock.now()).toISOString()
      const nothingYet = { rows: 0, shards: 0, quarantined: 0 }
      await checkpoint.append([{ kind: 'forget', at, identities: people.count, ...nothingYet }])
      await remove(pipeline, owner, checkpoint, people, found, options)
    }
    await finish(pipeline, store, checkpoint, before, options)
    return result
  } finally {
    await checkpoint.close()
  }
}

/** Adds the digests of people to those whom runs drop. @returns whether some are new */
async function keepOut(
  store: OwnedStore,
  lists: readonly StoredList[],
  people: People,
  maskKey: Uint8Array | null,
): Promise<boolean> {
  // The first list that has a key at hand; lists under a former mask key stay.
  const at = lists.findIndex((list) => withKey(list, maskKey) !== null)
  const before = lists[at] ?? newList(maskKey)
  const after = withDigests(before, people.digests(withKey(before, maskKey)!.key))
  if (after === before) return false
  await writeForgotten(store, at < 0 ? [...lists, after] : lists.with(at, after))
  return true
}

/** Removes what was found, in commits of their own. */
async function remove(
  pipeline: NamedPipeline,
  { store }: Owner,
  checkpoint: OpenLog,
  people: People,
  { shards, open }: Survey,
  options: ForgetOptions,
): Promise<void> {
  // Loaded only here: most commands never encode in this thread.
  const { inlineCoder } = await import('../inline-coder.ts')
  const { format } = pipeline.load
  const { stop, onShard } = options
  await replaceShards(store, pipeline, checkpoint, shards, people, {
    coder: inlineCoder(encodePlan(pipeline, options)),
    extension: shardExtension(format),
    rowGroupRows: rowGroupRows(format),
    stop,
    onShard,
    async onReady() {
      // While new shards are beside those that they replace, rows are there twice.
      if ((await store.size(SUCCESS_PATH)) !== null) await store.remove(SUCCESS_PATH)
    },
  })
  for (const { shard, partitions } of open) {
    await forgetOpenRows(checkpoint, pipeline, shard, people, () => removedRows(checkpoint.state, partitions))
  }
  for await (const items of itemsOfPeople(store, checkpoint, checkpoint.state, people))
    await forgetItems(store, checkpoint, items)
}

/** Brings manifest, files and summary page in line with the checkpoint, after this command or the crash of one. */
async function finish(
  pipeline: NamedPipeline,
  store: OwnedStore,
  checkpoint: OpenLog,
  before: number,
  options: ForgetOptions,
): Promise<void> {
  const { onLog } = options
  const { state } = checkpoint
  const quarantine = await Quarantine.open(store, checkpoint, pipeline.transform.onInvalid)
  await quarantine.write()
  // One that cannot be read is written anew.
  const manifest = await readManifest(store).catch(nullIf('damaged'))
  const isOld =
    state.invalidated.size > 0 || JSON.stringify(manifest?.forgotten) !== JSON.stringify(state.erasures)
  if (isOld) {
    await replaceManifest(pipeline, store, state, onLog)
    // After the manifest, and before files that tables name are removed.
    try {
      await updateTables(pipeline, store, options)
    } catch (error) {
      throw namingFiles(error, state)
    }
    await removeReplaced(store, checkpoint)
  }
  await checkpoint.compact(before)
  const plan = planAsOfLastRun(pipeline, state)
  const isWhole = state.erasures.length > 0 && plan !== null && isExported(plan, state)
  if (isWhole && (await store.size(SUCCESS_PATH)) === null) await store.replace(SUCCESS_PATH, [])
  if (isOld) await tryToWriteSummaryPage(pipeline, store, options)
}

/** Adds which files stay, although people in them are forgotten. */
function namingFiles(error: unknown, { invalidated }: CheckpointState): unknown {
  if (!isExportError(error) || invalidated.size === 0) return error
  const what = `${error.what}. Until then these files stay, with rows of people who are forgotten: ${[...invalidated].join(', ')}`
  return new ExportError({ ...plainError(error), what, cause: error })
}

async function resultOf(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  people: People,
  found: Survey,
): Promise<ForgetResult> {
  const { rows, shards, quarantined } = found
  const notes = [...queriesOfPeople(pipeline, state, people, found), ...(await unread(store, state))]
  return {
    pipeline: pipeline.name,
    identities: people.count,
    rows,
    shards: shards.length,
    quarantined,
    notes,
  }
}

/** Files that are not part of the data set, and are not read. */
async function unread(store: Store, state: CheckpointState): Promise<readonly string[]> {
  const known = new Set([...state.partitions].map(([key]) => splitPath(quarantinePath(key))[1]))
  const unexpected = (await store.list(QUARANTINE_FOLDER)).filter((name) => !known.has(name))
  const orphans = await store.list(ORPHANS)
  const folders = [unexpected.length > 0 && QUARANTINE_FOLDER, orphans.length > 0 && ORPHANS].filter(Boolean)
  if (folders.length === 0) return []
  return [
    `Files that are not part of the data set lie in ${folders.join(' and ')}. They were not read: delete them if they may hold rows of theirs.`,
  ]
}
