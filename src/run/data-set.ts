import type { Pipeline, Resource, Store } from '../core/index.ts'
import { diskStore } from '../disk/index.ts'
import { OPEN_FOLDER, partOf } from '../load/index.ts'
import { type Plan, planPartitions } from '../plan/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  ID_FOLDER,
  MANIFEST_PATH,
  SUCCESS_PATH,
} from '../state/index.ts'

/** The folder that a pipeline writes to. */
export function openDataSet({ load }: Pipeline): Store {
  return diskStore({ root: load.path, fileMode: load.fileMode, dirMode: load.dirMode })
}

/** What is to be exported, given what the checkpoint says has begun. */
export function planFor(pipeline: Pipeline, nowMs: number, state: CheckpointState | null): Plan {
  return planPartitions(pipeline, nowMs * 1000, (query) => begunOf(state, query))
}

function begunOf(
  state: CheckpointState | null,
  query: string,
): ReadonlyMap<string, { done: boolean }> | null {
  const windows = state?.partitions.branches.get(query)
  if (windows === undefined) return null
  const begun = new Map<string, { done: boolean }>()
  for (const [name, { pages, state }] of windows) if (pages > 0) begun.set(name, { done: state === 'done' })
  return begun
}

/**
 * Removes what earlier runs left, whatever state it is in, but nothing that is not Spillway's own: in the
 * data folders only shards. The lock, which this run holds, stays.
 */
export async function clearDataSet(store: Store): Promise<void> {
  await store.remove(SUCCESS_PATH)
  for (const resource of RESOURCES) await removeShards(store, resource)
  await store.removeFolder('_quarantine')
  await store.removeFolder('_state/orphans')
  await store.removeFolder(OPEN_FOLDER)
  await store.removeFolder(ID_FOLDER)
  await store.removeFolder(MANIFEST_PATH)
  // The last to go: until then a run that was not told to start over sees that something is missing.
  await store.removeFolder(CHECKPOINT_PATH)
}

const RESOURCES: readonly Resource[] = ['credentials', 'reports']

/** Removes the temporary files that a crash left of files written in one step. */
export async function sweepTemporaryFiles(store: Store): Promise<void> {
  for (const folder of ['.', '_state']) {
    for (const name of await store.list(folder)) {
      // A claim on the lock may be another process's, which is just laying it down.
      if (/^(?!lock\.).*\.[0-9a-f]{8}\.tmp$/.test(name)) await store.remove(`${folder}/${name}`)
    }
  }
}

async function removeShards(store: Store, folder: string): Promise<void> {
  for (const name of await store.list(folder)) {
    const path = `${folder}/${name}`
    if (partOf(name) !== null) await store.remove(path)
    else if (/^(?:query|window)=/.test(name)) await removeShards(store, path)
  }
  await store.removeEmptyFolder(folder)
}
