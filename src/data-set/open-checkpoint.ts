import { randomUUID } from 'node:crypto'
import {
  ExportError,
  type HeaderEntry,
  type NamedPipeline,
  type OwnedStore,
  type Pipeline,
  type Store,
} from '../core/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  checkSettings,
  frozenSettings,
  listCommits,
  MANIFEST_PATH,
  type OpenLog,
  readCheckpoint,
  type Settings,
} from '../state/index.ts'
import { replaceManifest } from './files.ts'
import type { DataSetOptions } from './options.ts'
import type { QuerySecrets } from './queries.ts'
import { type Owner, openSettledCheckpoint, readSettledCheckpoint } from './recover.ts'
import { invalidate, planRedo } from './redo/invalidate.ts'
import { removeReplaced } from './redo/replace.ts'
import { newChecks, newNames, requireSameNames, requireSameSecrets, secretChecks } from './same-queries.ts'
import { updateTables } from './table-formats.ts'

/**
 * Opens the checkpoint that this pipeline resumes from and brings the shards in line with it, or begins a new one.
 * @throws ExportError `config` or `damaged` when the pipeline may not resume from it; nothing is changed then
 */
export async function openOwnCheckpoint(
  pipeline: NamedPipeline,
  owner: Owner,
  secrets: QuerySecrets,
  options: Continuation & Pick<DataSetOptions, 'onLog'>,
): Promise<OpenLog> {
  const { header, checks, accept } = await admission(pipeline, owner.store, secrets, options)
  const { store } = owner
  const checkpoint = await openSettledCheckpoint(owner, header, options.onLog, accept)
  // After a crash. The manifest may still list them.
  if (checkpoint.state.invalidated.size > 0) {
    await replaceManifest(pipeline, store, checkpoint.state, options.onLog)
    await updateTables(pipeline, store, options)
    await removeReplaced(store, checkpoint)
  }
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
  if ((await store.size(MANIFEST_PATH)) !== null) throw lostCheckpoint('manifest')
}

/** The options that decide whether a run may resume from a checkpoint. */
export type Continuation = Pick<DataSetOptions, 'clock' | 'maskKey'>

/** The header of the checkpoint that this run would begin, and whether it may resume from what is there. */
async function admission(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: Continuation,
) {
  const header = headerOf(pipeline, options)
  const checks = secretChecks(pipeline, secrets, options.maskKey)
  const hasManifest = (await store.size(MANIFEST_PATH)) !== null
  // One object is left of a data set that starts over.
  const hasLog = (await listCommits(store)).length > 1
  /** @throws ExportError when the run may not resume from what was found; null: no checkpoint */
  const accept = (found: CheckpointState | null): void => {
    if (found !== null) {
      checkContinues(pipeline, found, header.settings)
      requireSameSecrets(found, checks, pipeline)
      requireSameNames(pipeline, found, options.maskKey)
    } else if (hasManifest || hasLog) throw lostCheckpoint(hasManifest ? 'manifest' : 'log')
  }
  return { header, checks, accept }
}

/**
 * Journals that what `options.redo` names is exported again, by this run or later ones.
 * @throws ExportError `config` or `damaged` when that is not allowed; nothing is changed then
 */
export async function redoPartitions(
  pipeline: NamedPipeline,
  store: OwnedStore,
  secrets: QuerySecrets,
  options: Continuation & Pick<DataSetOptions, 'onLog' | 'redo'>,
): Promise<void> {
  const { accept } = await admission(pipeline, store, secrets, options)
  const found = await readCheckpoint(store)
  accept(found)
  const redo = await planRedo(pipeline, found, options.redo, options.clock.now())
  if (redo === null) return
  const { partitions, rows, invalidated } = redo
  options.onLog('info', 'what is exported again stays until it is replaced', {
    partitions: partitions.size,
    rows,
    shards: invalidated.length,
  })
  await invalidate(store, redo)
}

function headerOf(pipeline: NamedPipeline, { clock, maskKey }: Continuation): HeaderEntry {
  return {
    kind: 'header',
    version: 4,
    pipeline: pipeline.name,
    data_set_id: randomUUID(),
    created_at: new Date(clock.now()).toISOString(),
    settings: frozenSettings(pipeline, maskKey) as HeaderEntry['settings'],
  }
}

function checkContinues(pipeline: Pipeline, found: CheckpointState, settings: Settings): void {
  if (found.header.pipeline !== pipeline.name) {
    throw new ExportError({
      kind: 'config',
      what: `The folder belongs to the pipeline "${found.header.pipeline}", not to "${pipeline.name}"`,
      where: pipeline.load.pathAsGiven,
      next: 'Give each pipeline a load.path of its own, restore the name, or start over with --fresh.',
    })
  }
  checkSettings(found.header.settings, settings, pipeline)
}

function lostCheckpoint(left: 'manifest' | 'log'): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `There is a ${left} but no checkpoint, so the export cannot resume`,
    where: CHECKPOINT_PATH,
    next: 'Restore the checkpoint from a backup, choose another load.path, or start over with --fresh.',
  })
}
