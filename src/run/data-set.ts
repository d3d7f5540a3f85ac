import type { Pipeline, Store } from '../core/index.ts'
import { diskStore } from '../disk/index.ts'
import { partOf } from '../load/index.ts'
import { type Plan, planPartitions } from '../plan/index.ts'
import { type CheckpointState, MANIFEST_PATH, SUCCESS_PATH } from '../state/index.ts'

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
  const windows = state?.partitions.get(query)
  if (windows === undefined) return null
  const begun = new Map<string, { done: boolean }>()
  for (const [name, { pages, state }] of windows) if (pages > 0) begun.set(name, { done: state === 'done' })
  return begun
}

/**
 * Removes what earlier runs left, whatever state it is in, but nothing that is not Spillway's own: in the
 * data folders only shards. The lock, which this run holds, stays.
 */
export async function clearDataSet(store: Store, pipeline: Pipeline): Promise<void> {
  await store.remove(SUCCESS_PATH)
  await store.remove(MANIFEST_PATH)
  for (const name of await store.list('_state')) {
    if (!name.startsWith('lock.')) await store.removeFolder(`_state/${name}`)
  }
  await store.removeFolder('_quarantine')
  await removeShards(store, pipeline.extract.resource)
}

async function removeShards(store: Store, folder: string): Promise<void> {
  for (const name of await store.list(folder)) {
    const path = `${folder}/${name}`
    if (partOf(name) !== null) await store.remove(path)
    else if (/^(?:query|window)=/.test(name)) await removeShards(store, path)
  }
  await store.removeEmptyFolder(folder)
}
