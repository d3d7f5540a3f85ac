import {
  type Clock,
  ExportError,
  formatInstant,
  type Log,
  type Micros,
  type NamedPipeline,
  type OwnedStore,
  type Pipeline,
} from '../../core/index.ts'
import { ShardSet } from '../../load/index.ts'
import { requireTablesToFollow } from '../../open-tables/index.ts'
import type { Plan } from '../../plan/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  checkMaskKey,
  readManifest,
  SUCCESS_PATH,
  saveCheckpoint,
  sweepLog,
} from '../../state/index.ts'
import { encodePlan } from '../encode-plan.ts'
import { refuseLinks, replaceManifest } from '../files.ts'
import { fillEmptyDataSet } from '../fill-empty-data-set.ts'
import { readBegunCheckpoint } from '../open-checkpoint.ts'
import { holdDataSet, namingLocations, openDataSet } from '../open-data-set.ts'
import { isExported, planAsOfLastRun } from '../plan-state.ts'
import { namePipeline } from '../queries.ts'
import { type Owner, openSettledCheckpoint } from '../recover.ts'
import { shardSetOptions } from '../shard-set-options.ts'
import { tryToWriteSummaryPage } from '../summary-page/write-summary-page.ts'
import { updateTables } from '../table-formats.ts'
import {
  type KeptPartition,
  type OldPartitions,
  oldPartitions,
  publishLeft,
  recordPrune,
  removedBy,
  removeInvalidated,
  removePrunedQuarantine,
} from './left-out.ts'

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

export type PruneOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  readonly onLog: Log
  /** Spillway's own. */
  readonly version: string
  /** Of the encoder, for the shard of a data set without rows. */
  readonly build: string
  /** For queries that are named by digests; null: there are none. */
  readonly maskKey: Uint8Array | null
}

/**
 * Reports what `pruneDataSet` would remove; changes nothing. Works during a run.
 * @throws ExportError `config` when the pipeline has no windows, or is not the one that the data set belongs to
 */
export async function planPruning(pipeline: Pipeline, before: Micros): Promise<PruneResult> {
  requireWindows(pipeline)
  return namingLocations(pipeline, async () => {
    const store = openDataSet(pipeline)
    const state = await readBegunCheckpoint(pipeline, store)
    if (state === null) return resultOf(pipeline, before, NOTHING, [])
    await requireTablesToFollow(store, { ...pipeline.load.tables, dataSetId: state.header.data_set_id })
    const old = oldPartitions(state, before)
    return resultOf(pipeline, before, old, removedBy(old, state).removed)
  })
}

/**
 * Removes the partitions whose windows ended by an instant: shards, quarantine files and their entries in the manifest.
 * The journal keeps them as pruned, so that no run requests them again. The order is journal entry, manifest, files.
 * Where no row is left, a shard without rows follows, as after a run. After a crash, the next prune or run finishes
 * this.
 * @throws ExportError `config` as above, `locked` when a run holds the data set
 */
export function pruneDataSet(given: Pipeline, before: Micros, options: PruneOptions): Promise<PruneResult> {
  requireWindows(given)
  const pipeline = namePipeline(given, options.maskKey)
  const { clock, stop, onLog } = options
  const warn = (message: string): void => onLog('warn', message)
  return namingLocations(pipeline, async () => {
    // The lock would create the folder, also if there is no data set.
    const isThere = (await openDataSet(pipeline).size(CHECKPOINT_PATH)) !== null
    if (!isThere) return planPruning(pipeline, before)
    return holdDataSet(pipeline, { clock, stop, warn }, (owner) => prune(pipeline, owner, before, options))
  })
}

async function prune(
  pipeline: NamedPipeline,
  owner: Owner,
  before: Micros,
  options: PruneOptions,
): Promise<PruneResult> {
  const { store } = owner
  const { clock, maskKey } = options
  await refuseLinks(store)
  const state = await readBegunCheckpoint(pipeline, store)
  if (state === null) return resultOf(pipeline, before, NOTHING, [])
  await requireTablesToFollow(store, { ...pipeline.load.tables, dataSetId: state.header.data_set_id })
  checkMaskKey(state.header, maskKey, pipeline)
  const old = oldPartitions(state, before)
  const { removed, shards } = removedBy(old, state)
  const done = resultOf(pipeline, before, old, removed)
  if (done.partitions > 0) {
    const pruned_at = new Date(clock.now()).toISOString()
    const { partitions, rows, quarantined } = done
    const what = { partitions, rows, quarantined, removed, shards }
    await recordPrune(store, state, old, { pruned_at, before: done.before, ...what })
  }
  await finish(pipeline, owner, options)
  return done
}

/** Brings manifest, files and summary page in line with the checkpoint, after a prune or the crash of one. */
async function finish(pipeline: NamedPipeline, owner: Owner, options: PruneOptions): Promise<void> {
  const { store } = owner
  const { stop, onLog } = options
  const state = await readBegunCheckpoint(pipeline, store)
  if (state === null) return
  if (await isLeftToDo(store, state)) {
    // Without a shard there are no columns to read.
    if (state.shards.length === 0) await store.remove(SUCCESS_PATH)
    await publishLeft(store, state)
    await replaceManifest(pipeline, store, state, onLog)
    await updateTables(pipeline, store, options)
    await removeInvalidated(store, state, stop)
    await tryToWriteSummaryPage(pipeline, store, options)
    // Later commands need not search for these files.
    await saveCheckpoint(store, { ...state, invalidated: new Set() })
    await sweepLog(store, state)
  }
  await removePrunedQuarantine(store, state)
  const plan = await planWithoutRows(pipeline, store, state)
  if (plan !== null) await finalizeWithoutRows(pipeline, owner, state, plan, options)
}

/** The plan of a data set that a prune left without rows, and that is complete but not marked as such; else null. */
async function planWithoutRows(
  pipeline: NamedPipeline,
  store: OwnedStore,
  state: CheckpointState,
): Promise<Plan | null> {
  if (state.prunes.length === 0) return null
  for (const { rows } of state.shards) if (rows > 0) return null
  if ((await store.size(SUCCESS_PATH)) !== null) return null
  const plan = planAsOfLastRun(pipeline, state)
  return plan !== null && isExported(plan, state) ? plan : null
}

/** Leaves a data set without rows as a run does: one shard without rows, manifest, `_SUCCESS`, summary page. */
async function finalizeWithoutRows(
  pipeline: NamedPipeline,
  owner: Owner,
  { header }: CheckpointState,
  plan: Plan,
  options: PruneOptions,
): Promise<void> {
  const { onLog } = options
  const { store } = owner
  const checkpoint = await openSettledCheckpoint(owner, header, onLog)
  try {
    const { state } = checkpoint
    // Loaded only here: most commands never encode in this thread.
    const { inlineCoder } = await import('../inline-coder.ts')
    const coding = { coder: inlineCoder(encodePlan(pipeline, options)) }
    const opened = await ShardSet.open(shardSetOptions(pipeline, owner, coding, checkpoint, options), [])
    if ('set' in opened) {
      try {
        await fillEmptyDataSet(pipeline, state, opened.set, plan)
      } finally {
        await opened.set.close()
      }
    }
    await replaceManifest(pipeline, store, state, onLog)
    await updateTables(pipeline, store, options)
    await store.replace(SUCCESS_PATH, [])
    await tryToWriteSummaryPage(pipeline, store, options)
  } finally {
    await checkpoint.close()
  }
}

async function isLeftToDo(store: OwnedStore, { invalidated, prunes }: CheckpointState): Promise<boolean> {
  if (invalidated.size > 0) return true
  const manifest = prunes.length === 0 ? null : await readManifest(store)
  return manifest !== null && manifest.prunes.length < prunes.length
}

const NOTHING: OldPartitions = {
  partitions: new Set(),
  shards: new Map(),
  rows: 0,
  quarantined: 0,
  bytes: 0,
  kept: [],
}

function resultOf(
  { name }: Pipeline,
  before: Micros,
  old: OldPartitions,
  removed: PruneResult['removed'],
): PruneResult {
  const { partitions, shards, rows, quarantined, bytes, kept } = old
  return {
    pipeline: name,
    before: formatInstant(before),
    partitions: partitions.size,
    shards: shards.size,
    rows,
    quarantined,
    bytes,
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
