import {
  type Log,
  nullIf,
  type OwnedStore,
  ROW_FOLDERS,
  SUMMARY_PAGE_PATH,
  SUMMARY_PAGE_START,
} from '../../core/index.ts'
import { listSealed, moveToOrphans, QUARANTINE_FOLDER, SEALED_FOLDER } from '../../load/index.ts'
import { removeTables } from '../../open-tables/index.ts'
import {
  CHECKPOINT_PATH,
  CHECKPOINT_START,
  emptyLog,
  MANIFEST_PATH,
  MANIFEST_START,
  readCheckpoint,
  readManifest,
  readSuppression,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  suppressionFileOf,
} from '../../state/index.ts'
import { LOADS_FOLDER } from '../commands/warehouse/loaded.ts'
import { SUCCESS_PATH } from '../settle/publish.ts'
import { beginsWith } from '../settle/summary-page.ts'
import { CLEARING_PATH, tableOwner } from './find-state.ts'
import { LIKE_A_SHARD, rowFiles } from './look.ts'
import { removeFailedStart } from './record-start.ts'

/** The people who were forgotten stay. What is not known to be Spillway's own moves to `_state/orphans`. */
export async function clearDataSet(store: OwnedStore, log: Log = () => {}): Promise<void> {
  const state = await readCheckpoint(store).catch(nullIf())
  // The log has people whom a killed `forget` had committed. A key that is gone may stay so.
  const people = await readSuppression(store, state).catch(() => readSuppression(store, null))
  if (people !== null) await store.replace(...suppressionFileOf(people))
  await store.create(CLEARING_PATH, [])
  const manifest = await readManifest(store).catch(nullIf())
  const shards = [...(state?.shards ?? []), ...(manifest?.shards ?? [])]
  const known = new Set([...(state?.invalidated ?? []), ...shards.map(({ path }) => path)])
  const aside: string[] = []
  const clear = async (path: string, isOurs: boolean): Promise<void> => {
    if (isOurs) await store.remove(path)
    else aside.push(await moveToOrphans(store, path))
  }
  /** @param start the beginning of Spillway's own file; '': it is empty */
  const clearFile = async (path: string, start: string): Promise<void> => {
    const size = await store.size(path)
    if (size === null) return
    await clear(path, start === '' ? size === 0 : await beginsWith(store, path, start))
  }
  const clearManifest = async (): Promise<void> => {
    const signature = await store.size(SIGNATURE_PATH)
    if (signature !== null) await clear(SIGNATURE_PATH, signature === SIGNATURE_BYTES)
    await clearFile(MANIFEST_PATH, MANIFEST_START)
  }
  await clearFile(SUCCESS_PATH, '')
  await clearFile(SUMMARY_PAGE_PATH, SUMMARY_PAGE_START)
  // Before the shards that they name.
  await removeTables(store, await tableOwner(store))
  if (state !== null) await clearManifest()
  for (const resource of ROW_FOLDERS) {
    for await (const path of rowFiles(store, resource))
      if (LIKE_A_SHARD.test(path)) await clear(path, known.has(path))
  }
  for (const name of await store.list(QUARANTINE_FOLDER))
    if (name.endsWith('.jsonl')) await store.remove(`${QUARANTINE_FOLDER}/${name}`)
  for (const name of await store.list(LOADS_FOLDER)) await store.remove(`${LOADS_FOLDER}/${name}`)
  await removeFailedStart(store)
  for (const name of await listSealed(store)) await store.remove(`${SEALED_FOLDER}/${name}`)
  await emptyLog(store, state?.logEnd.file ?? 0)
  await clearManifest()
  // What it names is known as Spillway's own.
  await clearFile(CHECKPOINT_PATH, CHECKPOINT_START)
  await store.remove(CLEARING_PATH)
  if (aside.length === 0) return
  const more = aside.length > 1 ? ` and ${aside.length - 1} more` : ''
  log('warn', `what is not known to be spillway's own was kept: ${aside[0]}${more}`)
}
