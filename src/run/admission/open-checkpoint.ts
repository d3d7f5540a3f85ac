import { randomUUID } from 'node:crypto'
import {
  ExportError,
  type HeaderEntry,
  type NamedPipeline,
  type Pipeline,
  type Store,
} from '../../core/index.ts'
import {
  CHECKPOINT_PATH,
  type Checkpoint,
  type CheckpointState,
  checkSettings,
  differInColumns,
  frozenSettings,
  MANIFEST_PATH,
  readCheckpoint,
  type Settings,
} from '../../state/index.ts'
import { type Invalidation, invalidate, invalidationOf, planRedo } from '../data-set/invalidate.ts'
import { openSettledCheckpoint, readSettledCheckpoint } from '../data-set/recover.ts'
import type { RunOptions } from '../options.ts'
import type { QuerySecrets } from '../queries.ts'
import {
  newChecks,
  newNames,
  requireSameNames,
  requireSameSecrets,
  type SecretCheck,
  secretChecks,
} from './same-queries.ts'

/**
 * Opens the checkpoint that this pipeline resumes from and brings the shards in line with it, or begins a new one.
 * @throws ExportError `config` or `damaged` when the pipeline may not resume from it; nothing is changed then
 */
export async function openOwnCheckpoint(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: Continuation & Pick<RunOptions, 'observer'>,
): Promise<Checkpoint> {
  const { header, checks, accept } = await admission(pipeline, store, secrets, options)
  const warn = (message: string): void => options.observer.log('warn', message)
  const checkpoint = await openSettledCheckpoint(store, header, accept, warn)
  const lines = [
    ...newChecks(checkpoint.state, checks),
    ...newNames(pipeline, checkpoint.state, options.maskKey),
  ]
  if (lines.length > 0) await checkpoint.append(lines)
  return checkpoint
}

/**
 * Reads the checkpoint that this pipeline would resume from, with the checks of {@link openOwnCheckpoint}; null when
 * there is none. Changes nothing.
 */
export async function readOwnCheckpoint(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: Continuation,
): Promise<CheckpointState | null> {
  const { accept } = await admission(pipeline, store, secrets, options)
  return readSettledCheckpoint(store, accept)
}

/**
 * The same for commands that send no requests: secrets are not read, the mask key is not compared, shards are not
 * checked.
 */
export async function readBegunCheckpoint(pipeline: Pipeline, store: Store): Promise<CheckpointState | null> {
  const found = await readCheckpoint(store)
  if (found !== null) checkContinues(pipeline, found, frozenSettings(pipeline, null))
  else await requireNoManifest(store)
  return found
}

/** @throws ExportError `damaged` when there is a manifest, for a data set without a checkpoint */
export async function requireNoManifest(store: Store): Promise<void> {
  if ((await store.size(MANIFEST_PATH)) !== null) throw lostCheckpoint()
}

/** The options that decide whether a run may resume from a checkpoint. */
export type Continuation = Pick<RunOptions, 'clock' | 'maskKey'>

type Admission = {
  /** Of the checkpoint that this run would begin. */
  readonly header: HeaderEntry
  readonly checks: readonly SecretCheck[]
  /** @throws ExportError when the run may not resume from what was found; null: no checkpoint */
  readonly accept: (found: CheckpointState | null) => void
}

async function admission(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: Continuation,
): Promise<Admission> {
  const header = headerOf(pipeline, options)
  const checks = secretChecks(pipeline, secrets, options.maskKey)
  const hasManifest = (await store.size(MANIFEST_PATH)) !== null
  const accept = (found: CheckpointState | null): void => {
    if (found !== null) {
      checkContinues(pipeline, found, header.settings)
      requireSameSecrets(found, checks, pipeline)
      requireSameNames(pipeline, found, options.maskKey)
    } else if (hasManifest) throw lostCheckpoint()
  }
  return { header, checks, accept }
}

/**
 * Invalidates what `options.redo` names, so that this run exports it again. If that is everything, the columns may
 * change.
 * @throws ExportError `config` or `damaged` when that is not allowed; nothing is changed then
 */
export async function redoPartitions(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: Continuation & Pick<RunOptions, 'observer' | 'redo'>,
): Promise<void> {
  const { header, accept } = await admission(pipeline, store, secrets, options)
  const found = await readCheckpoint(store)
  const hasOtherColumns = found !== null && differInColumns(found.header.settings, header.settings)
  const state = hasOtherColumns ? { ...found, header: { ...found.header, settings: header.settings } } : found
  accept(state)
  const redo = await planRedo(pipeline, state, options.redo, options.clock.now())
  if (hasOtherColumns && !isEverything(found, redo)) accept(found)
  if (state === null || (redo === null && !hasOtherColumns)) return
  options.observer.log('info', 'invalidating what is to be exported anew', {
    partitions: redo?.partitions.size ?? 0,
    rows: redo?.rows ?? 0,
    shards: redo?.invalidated.length ?? 0,
  })
  await invalidate(store, state, redo ?? invalidationOf(state, { partitions: [], shards: [] }))
}

/** Whether everything that was exported is invalidated. */
function isEverything(
  { shards, openShards, partitions }: CheckpointState,
  redo: Invalidation | null,
): boolean {
  for (const { shard } of shards) if (redo?.shards.has(shard) !== true) return false
  for (const shard of openShards.keys()) if (redo?.shards.has(shard) !== true) return false
  for (const [key, { state }] of partitions) {
    if (state !== 'pruned' && redo?.partitions.has(key) !== true) return false
  }
  return true
}

function headerOf(
  pipeline: NamedPipeline,
  { clock, maskKey }: Pick<RunOptions, 'clock' | 'maskKey'>,
): HeaderEntry {
  return {
    kind: 'header',
    version: 3,
    pipeline: pipeline.name,
    data_set_id: randomUUID(),
    created_at: new Date(clock.now()).toISOString(),
    settings: frozenSettings(pipeline, maskKey) as HeaderEntry['settings'],
  }
}

function checkContinues(pipeline: Pipeline, found: CheckpointState, settings: Settings): void {
  if (found.header.pipeline !== pipeline.name) {
    throw new ExportError(
      'config',
      `The folder belongs to the pipeline "${found.header.pipeline}", not to "${pipeline.name}"`,
      pipeline.load.pathAsGiven,
      'Give each pipeline a load.path of its own, restore the name, or start over with --fresh.',
    )
  }
  checkSettings(found.header.settings, settings, pipeline)
}

function lostCheckpoint(): ExportError {
  return new ExportError(
    'damaged',
    'There is a manifest but no checkpoint, so the export can not resume',
    CHECKPOINT_PATH,
    'Restore the checkpoint from a backup, choose another load.path, or start over with --fresh.',
  )
}
