import { randomUUID } from 'node:crypto'
import {
  ExportError,
  isExportError,
  type Log,
  type NamedPipeline,
  nullIf,
  type OwnedStore,
  plainError,
  ROW_FOLDERS,
  type Store,
  SUMMARY_PAGE_PATH,
  SUMMARY_PAGE_START,
} from '../core/index.ts'
import {
  listSealed,
  moveToOrphans,
  ORPHANS,
  partOf,
  QUARANTINE_FOLDER,
  SEALED_FOLDER,
  type ShardReader,
} from '../load/index.ts'
import {
  DELTA_FOLDER,
  ICEBERG_FOLDER,
  METADATA_FOLDER,
  removeTables,
  type TableOwner,
} from '../open-tables/index.ts'
import {
  CHECKPOINT_PATH,
  CHECKPOINT_START,
  type CheckpointState,
  emptyLog,
  LOG_FOLDER,
  MANIFEST_PATH,
  MANIFEST_START,
  manifestDifference,
  readCheckpoint,
  readHeader,
  readManifest,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  SUCCESS_PATH,
  SUPPRESSION_PATH,
  writeManifest,
} from '../state/index.ts'
import { planAsOfLastRun, retiredQueries } from './plan-state.ts'
import { scopeOf } from './scope.ts'
import { bringPeople } from './suppression.ts'

/**
 * Removes the files of earlier runs, whatever their state. A file that has such a name but is not known to be
 * Spillway's own is moved to `_state/orphans`. The lock, which this run holds, stays.
 * @param accept may refuse it before anything is removed, when the list of forgotten people is in place
 */
export async function clearDataSet(
  store: OwnedStore,
  log: Log,
  accept: () => Promise<unknown>,
): Promise<void> {
  const state = await readCheckpoint(store).catch(nullIf())
  // Before the checkpoint goes, which names people whom a killed `forget` had committed. A list that is gone may stay so.
  if (state !== null) await bringPeople(store, state).catch(nullIf('damaged'))
  await accept()
  const known = await knownShards(store, state)
  const aside: string[] = []
  const clear = async (path: string, isOurs: boolean): Promise<void> => {
    if (isOurs) await store.remove(path)
    else aside.push(await moveToOrphans(store, path))
  }
  const clearManifest = async (): Promise<void> => {
    const signature = await store.size(SIGNATURE_PATH)
    if (signature !== null) await clear(SIGNATURE_PATH, signature === SIGNATURE_BYTES)
    await clearFile(store, MANIFEST_PATH, MANIFEST_START, clear)
  }
  await clearFile(store, SUCCESS_PATH, '', clear)
  await clearFile(store, SUMMARY_PAGE_PATH, SUMMARY_PAGE_START, clear)
  // Before the shards that they name.
  await removeTables(store, await tableOwner(store))
  if (state !== null) await clearManifest()
  for (const resource of ROW_FOLDERS) {
    await clearShards(store, resource, (path) => clear(path, known.has(path)))
  }
  for (const path of await quarantineFiles(store)) await store.remove(path)
  for (const name of await listSealed(store)) await store.remove(`${SEALED_FOLDER}/${name}`)
  await emptyLog(store, state?.logEnd.file ?? 0)
  // Removed last, or the manifest without it: until then, a run without --fresh detects that something is missing.
  await clearManifest()
  await clearFile(store, CHECKPOINT_PATH, CHECKPOINT_START, clear)
  if (aside.length === 0) return
  const more = aside.length > 1 ? ` and ${aside.length - 1} more` : ''
  log('warn', `what is not known to be spillway's own was kept: ${aside[0]}${more}`)
}

/**
 * Call it before anything is changed.
 * @returns the names in the folder of the data set
 * @throws ExportError `storage` naming a symbolic link at a path that a run may use
 */
export async function refuseLinks(store: Store): Promise<readonly string[]> {
  // One list, instead of a request for each path that a bucket does not have.
  const names = await store.list('')
  for (const path of [
    SUCCESS_PATH,
    MANIFEST_PATH,
    SIGNATURE_PATH,
    SUMMARY_PAGE_PATH,
    CHECKPOINT_PATH,
    QUARANTINE_FOLDER,
    ORPHANS,
    LOG_FOLDER,
    SEALED_FOLDER,
    SUPPRESSION_PATH,
    ICEBERG_FOLDER,
    METADATA_FOLDER,
    DELTA_FOLDER,
    ...ROW_FOLDERS,
  ]) {
    const [first = ''] = path.split('/')
    // The state may be elsewhere.
    if (first === STATE_FOLDER || names.includes(first)) await store.size(path)
  }
  return names
}

const STATE_FOLDER = '_state'

async function quarantineFiles(store: Store): Promise<readonly string[]> {
  const names = await store.list(QUARANTINE_FOLDER)
  return names.filter((name) => name.endsWith('.jsonl')).map((name) => `${QUARANTINE_FOLDER}/${name}`)
}

type Clear = (path: string, isOurs: boolean) => Promise<void>

/** @param start the beginning of Spillway's own file; '': it is empty */
async function clearFile(store: Store, path: string, start: string, clear: Clear): Promise<void> {
  const size = await store.size(path)
  if (size === null) return
  const isOurs = start === '' ? size === 0 : await beginsWith(store, path, start)
  await clear(path, isOurs)
}

/** Whether the file at its path is a summary page of Spillway; null: there is none. */
export async function isSummaryPage(store: Store): Promise<boolean | null> {
  return (await store.size(SUMMARY_PAGE_PATH)) === null
    ? null
    : beginsWith(store, SUMMARY_PAGE_PATH, SUMMARY_PAGE_START)
}

async function beginsWith(store: Store, path: string, start: string): Promise<boolean> {
  // It may be a folder, for example.
  const bytes = await store.read(path, 0, start.length).catch(nullIf())
  return Buffer.from(bytes ?? []).toString() === start
}

/** Paths of the shards in checkpoint and manifest, as far as these can be read. */
async function knownShards(store: Store, state: CheckpointState | null): Promise<ReadonlySet<string>> {
  const manifest = await readManifest(store).catch(nullIf())
  const shards = [...(state?.shards ?? []), ...(manifest?.shards ?? [])]
  return new Set([...(state?.invalidated ?? []), ...shards.map(({ path }) => path)])
}

/**
 * The data set in a folder, as the owner of tables there. One that has not begun owns none.
 */
export async function tableOwner(store: Store): Promise<TableOwner> {
  const header = await readHeader(store).catch(nullIf('damaged', 'storage'))
  if (header !== null) return { dataSetId: header.data_set_id }
  const manifest = await readManifest(store).catch(nullIf('damaged', 'storage'))
  if (manifest !== null) return { dataSetId: manifest.data_set_id }
  const sizes = await Promise.all([CHECKPOINT_PATH, MANIFEST_PATH].map((path) => store.size(path)))
  return { dataSetId: sizes.every((size) => size === null) ? randomUUID() : null }
}

async function clearShards(
  store: OwnedStore,
  folder: string,
  clear: (path: string) => Promise<void>,
): Promise<void> {
  for (const name of await store.list(folder)) {
    const path = `${folder}/${name}`
    if (partOf(name) !== null) await clear(path)
    else if (/^(?:query|import_window)=/.test(name)) await clearShards(store, path, clear)
  }
}

/**
 * Writes the manifest of a checkpoint. The signature of the previous manifest is removed first: it must never be found
 * beside the new one. A signed manifest from which only the list of runs differs stays, with its signature.
 * @returns whether it was written
 */
export async function replaceManifest(
  pipeline: NamedPipeline,
  store: OwnedStore,
  state: CheckpointState,
  log: Log,
): Promise<boolean> {
  const plan = {
    scope: state.scope ?? scopeOf(pipeline),
    planned: [...(planAsOfLastRun(pipeline, state)?.partitions() ?? [])].map(({ key }) => key),
    retired: retiredQueries(pipeline, state),
  }
  const before = await store.read(MANIFEST_PATH)
  const difference = before === null ? 'all' : manifestDifference(before, pipeline, state, plan)
  if (difference === 'none') return false
  if (difference === 'runs' && (await store.size(SIGNATURE_PATH)) === SIGNATURE_BYTES) return false
  await removeSignature(store, log)
  await writeManifest(store, pipeline, state, plan)
  return true
}

async function removeSignature(store: OwnedStore, log: Log): Promise<void> {
  const size = await store.size(SIGNATURE_PATH)
  if (size === null) return
  if (size === SIGNATURE_BYTES) {
    await store.remove(SIGNATURE_PATH)
    log('info', 'the manifest changed, so its former signature was removed')
    return
  }
  const aside = await moveToOrphans(store, SIGNATURE_PATH)
  log('warn', `${SIGNATURE_PATH} is no signature of spillway; moved to ${aside}`)
}

export type ShardFile = { readonly path: string; readonly bytes: number }

/** Reads the contents of a shard. Errors of these get its path. */
export async function readShard<T>(
  store: Store,
  shard: ShardFile,
  read: (reader: ShardReader) => Promise<T>,
  wholeBytes?: number,
): Promise<T> {
  try {
    return await read(shardReader(store, shard, wholeBytes))
  } catch (error) {
    throw namingShard(shard, error)
  }
}

export function namingShard({ path }: ShardFile, error: unknown): unknown {
  if (!isExportError(error) || error.where !== '') return error
  return new ExportError({ ...plainError(error), where: path, cause: error })
}

/** Shards up to this size are read at once, others in ranges: each is a request to a bucket, and opens a file. */
const WHOLE_BYTES = 4 << 20

/** Contents of a shard for the reader of its format. */
export function shardReader(store: Store, { path, bytes }: ShardFile, wholeBytes = WHOLE_BYTES): ShardReader {
  if (bytes > wholeBytes)
    return {
      size: bytes,
      slice: async (start, end) => (await store.read(path, start, end)) ?? new Uint8Array(),
      stream: () => store.stream(path),
    }
  let read: Promise<Uint8Array | null> | null = null
  const whole = async (): Promise<Uint8Array> => {
    // With a byte that it should not have.
    read ??= store.read(path, 0, bytes + 1)
    return (await read) ?? new Uint8Array()
  }
  return {
    size: bytes,
    slice: async (start, end) => (await whole()).subarray(start, end),
    async *stream() {
      yield await whole()
    },
  }
}
