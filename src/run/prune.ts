import {
  type Clock,
  ExportError,
  formatInstant,
  type Micros,
  type NamedPipeline,
  type Pipeline,
  type Store,
} from '../core/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  checkMaskKey,
  readManifest,
  rewriteCheckpoint,
  SUCCESS_PATH,
} from '../state/index.ts'
import { readBegunCheckpoint } from './admission/open-checkpoint.ts'
import { refuseLinks, replaceManifest } from './data-set/files.ts'
import { holdDataSet, namingLocations, openDataSet } from './data-set/open-data-set.ts'
import {
  type KeptPartition,
  type OldPartitions,
  oldPartitions,
  recordPrune,
  removePruned,
  removePrunedQuarantine,
} from './data-set/prune.ts'
import type { RunObserver } from './options.ts'
import { namePipeline } from './queries.ts'
import { tryToReport } from './report/write-report.ts'

export type PruneReport = {
  readonly pipeline: string
  /** Windows that ended by this time are old enough. */
  readonly before: string
  readonly partitions: number
  readonly shards: number
  readonly rows: number
  readonly quarantined: number
  readonly bytes: number
  /** Partitions that are old enough but stay. */
  readonly kept: readonly KeptPartition[]
}

export type PruneOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  readonly observer: Pick<RunObserver, 'log'>
  /** Spillway's own. */
  readonly version: string
  /** For queries that are named by digests; null: there are none. */
  readonly maskKey: Uint8Array | null
}

/**
 * Reports what `pruneDataSet` would remove; changes nothing. Works during a run.
 * @throws ExportError `config` when the pipeline has no windows, or is not the one that the data set belongs to
 */
export async function planPruning(pipeline: Pipeline, before: Micros): Promise<PruneReport> {
  requireWindows(pipeline)
  const state = await namingLocations(pipeline, () => readBegunCheckpoint(pipeline, openDataSet(pipeline)))
  return report(pipeline, before, state === null ? NOTHING : oldPartitions(state, before))
}

/**
 * Removes the partitions whose windows ended by an instant: shards, quarantine files and their entries in the manifest.
 * The journal keeps them as pruned, so that no run requests them again. The order is journal entry, manifest, files.
 * After a crash, the next prune or run finishes this.
 * @throws ExportError `config` as above, `locked` when a run holds the data set
 */
export function pruneDataSet(given: Pipeline, before: Micros, options: PruneOptions): Promise<PruneReport> {
  requireWindows(given)
  const pipeline = namePipeline(given, options.maskKey)
  const { clock, stop, observer } = options
  const warn = (message: string): void => observer.log('warn', message)
  return namingLocations(pipeline, async () => {
    // The lock would create the folder, also if there is no data set.
    const isThere = (await openDataSet(pipeline).size(CHECKPOINT_PATH)) !== null
    if (!isThere) return planPruning(pipeline, before)
    return holdDataSet(pipeline, { clock, stop, warn }, (store) => prune(pipeline, store, before, options))
  })
}

async function prune(
  pipeline: NamedPipeline,
  store: Store,
  before: Micros,
  options: PruneOptions,
): Promise<PruneReport> {
  const { clock, maskKey } = options
  await refuseLinks(store)
  const state = await readBegunCheckpoint(pipeline, store)
  if (state === null) return report(pipeline, before, NOTHING)
  if (maskKey !== null) checkMaskKey(state.header.settings, maskKey, pipeline.file)
  const old = oldPartitions(state, before)
  const done = report(pipeline, before, old)
  if (done.partitions > 0) {
    const pruned_at = new Date(clock.now()).toISOString()
    const { partitions, rows } = done
    await recordPrune(store, state, old, { pruned_at, before: done.before, partitions, rows })
  }
  await finish(pipeline, store, options)
  return done
}

/** Brings manifest, files and report in line with the checkpoint, after a prune or the crash of one. */
async function finish(pipeline: NamedPipeline, store: Store, options: PruneOptions): Promise<void> {
  const { stop, observer } = options
  const state = await readBegunCheckpoint(pipeline, store)
  if (state === null) return
  if (await isLeftToDo(store, state)) {
    // Without a shard there are no columns to read: the next run makes a shard without rows.
    if (state.shards.length === 0) await store.remove(SUCCESS_PATH)
    await replaceManifest(pipeline, store, state, observer)
    await removePruned(store, state, stop)
    // The report must not include pruned rows any longer. The checkpoint is rewritten from the state here; the next run
    // counts the rows again if needed.
    await tryToReport(pipeline, store, state, options, async () => {})
    // Later commands need not search for these files.
    await rewriteCheckpoint(store, state)
  }
  await removePrunedQuarantine(store, state)
}

async function isLeftToDo(store: Store, { invalidated, prunes }: CheckpointState): Promise<boolean> {
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

function report({ name }: Pipeline, before: Micros, old: OldPartitions): PruneReport {
  const { partitions, shards, rows, quarantined, bytes, kept } = old
  return {
    pipeline: name,
    before: formatInstant(before),
    partitions: partitions.size,
    shards: shards.size,
    rows,
    quarantined,
    bytes,
    kept,
  }
}

function requireWindows({ extract, file }: Pipeline): void {
  if (extract.windows !== null) return
  throw new ExportError(
    'config',
    'prune goes by windows, and the pipeline has none: the age of rows is not known',
    file,
    'Export to another load.path with extract.windows and every, or start over with a shorter range and --fresh.',
  )
}
