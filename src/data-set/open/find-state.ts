import { randomUUID } from 'node:crypto'
import { ExportError, isExportError, nullIf, ROW_FOLDERS, type Store } from '../../core/index.ts'
import type { TableOwner } from '../../open-tables/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  type Found,
  findCheckpoint,
  hasCommits,
  LOG_FOLDER,
  MANIFEST_PATH,
  type Manifest,
  readHeader,
  readManifest,
  readSuppression,
  SUPPRESSION_PATH,
  stateOfManifest,
} from '../../state/index.ts'

type FoundState = {
  readonly found: Found | null
  /** The manifest that stands in for a checkpoint which is lost, or which another version wrote; null: nothing is lost. */
  readonly manifest: Manifest | null
  /** As one of these tells it; null: the data set has not begun. */
  readonly state: CheckpointState | null
}

/**
 * Changes nothing. @returns null: the data set was given up, and not all of it is gone
 * @throws ExportError `damaged`; `config` if another version wrote it and there is no manifest
 */
export async function findState(store: Store): Promise<FoundState | null> {
  if (await isClearing(store)) return null
  let otherVersion: ExportError | null = null
  const found = await findCheckpoint(store).catch((error: unknown) => {
    if (!isExportError(error, 'config') || error.where !== CHECKPOINT_PATH) throw error
    otherVersion = error
    return null
  })
  const state: CheckpointState | null = found?.fold ?? null
  // A checkpoint that has only just begun may have been meant to take the place of a lost one.
  if (state !== null && state.runs.length > 0) return { found, manifest: null, state }
  const manifest = await readManifest(store)
  const isOfIt = state === null || state.header.data_set_id === manifest?.data_set_id
  if (manifest !== null && manifest.runs.length > 0 && isOfIt)
    return { found, manifest, state: stateOfManifest(manifest) }
  if (otherVersion !== null) throw otherVersion
  if (state === null && (await hasCommits(store)) && (await store.size(CHECKPOINT_PATH)) === null)
    throw new ExportError({
      kind: 'damaged',
      what: 'There is a log but no checkpoint and no manifest, so the export cannot resume',
      where: LOG_FOLDER,
      next: 'Restore _state from a backup, choose another load.path, or start over with --fresh.',
    })
  return { found, manifest: null, state }
}

/** There from the moment at which a data set is given up until all of it is gone: any command removes the rest. */
export const CLEARING_PATH = '_state/clearing'

export async function isClearing(store: Store): Promise<boolean> {
  return (await store.size(CLEARING_PATH)) !== null
}

/** Where the checkpoint cannot be read, the manifest stands in for it. */
export async function knownState(
  store: Store,
): Promise<{ readonly state: CheckpointState | null; readonly fault: ExportError | null }> {
  try {
    return { state: (await findState(store))?.state ?? null, fault: null }
  } catch (error) {
    if (!isExportError(error, 'damaged', 'config')) throw error
    const manifest = await readManifest(store).catch(nullIf('damaged'))
    return { state: manifest === null ? null : stateOfManifest(manifest), fault: error }
  }
}

/** Whether the folder holds anything of a data set. */
export async function isBegun(store: Store): Promise<boolean> {
  const names = new Set(await store.list(''))
  return ['_state', MANIFEST_PATH, ...ROW_FOLDERS].some((name) => names.has(name))
}

/** @throws ExportError `damaged` or `config` when the list of forgotten people is lost: they would come back */
export async function requireSuppression(store: Store, { manifest, state }: FoundState): Promise<void> {
  if ((await readSuppression(store, state)) !== null || !manifest?.forgotten.length) return
  throw new ExportError({
    kind: 'config',
    what: 'The checkpoint is lost, and with it the list of the people who were forgotten in this data set',
    where: SUPPRESSION_PATH,
    next: 'Restore it from a backup: without it, their rows would come back. Or export to another load.path, and run `forget` there first.',
  })
}

/** Whose tables may be there: a data set that has not begun owns none. */
export async function tableOwner(store: Store): Promise<TableOwner> {
  const header = await readHeader(store).catch(nullIf('damaged', 'config', 'storage'))
  if (header !== null) return { dataSetId: header.data_set_id }
  const manifest = await readManifest(store).catch(nullIf('damaged', 'storage'))
  if (manifest !== null) return { dataSetId: manifest.data_set_id }
  const sizes = await Promise.all([CHECKPOINT_PATH, MANIFEST_PATH].map((path) => store.size(path)))
  return { dataSetId: sizes.every((size) => size === null) ? randomUUID() : null }
}
