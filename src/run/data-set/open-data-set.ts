import { join } from 'node:path'
import type { Clock, DataSetLocation, Pipeline, Store } from '../../core/index.ts'
import { isExportError } from '../../core/index.ts'
import { diskStore, requireWritable } from '../../disk/index.ts'
import { s3Store, splitStore } from '../../s3/index.ts'
import { takeLock } from '../../state/index.ts'
import { growingFiles } from './data-set.ts'

/** Where a pipeline writes to. */
export function openDataSet({ load }: Pipeline): Store {
  const { place: location, fileMode, dirMode } = load
  if (location.kind === 'disk') return diskStore({ root: location.root, fileMode, dirMode })
  const { stateRoot } = location
  if (stateRoot === null) return s3Store(location)
  return splitStore(location, diskStore({ root: stateRoot, fileMode, dirMode }), stateRoot)
}

/** @throws ExportError as the first write there would, as far as that can be known without one */
export async function requireReachable({ load: { place: location } }: Pipeline): Promise<void> {
  await requireFolder(location)
  if (location.kind === 's3') await s3Store(location).list('')
}

/** @throws ExportError `config` when nothing can be written where a data set, or its state, is to lie */
export async function requireFolder(location: DataSetLocation): Promise<void> {
  const root = location.kind === 'disk' ? location.root : location.stateRoot
  if (root === null) return
  await requireWritable(root, location.kind === 'disk' ? '.' : '_state')
  await requireWritable(join(root, '_state'), '_state')
}

export type HoldOptions = {
  readonly clock: Clock
  /** Ends the wait for a rival. */
  readonly stop: AbortSignal
  readonly warn: (message: string) => void
}

/**
 * Holds a data set that is there against runs while something is done to it.
 * @throws ExportError `locked` when another one is at work
 */
export async function holdDataSet<T>(
  pipeline: Pipeline,
  { clock, stop, warn }: HoldOptions,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const options = { clock, stop, fresh: false, growing: growingFiles, warn }
  const lock = await takeLock(openDataSet(pipeline), options)
  try {
    return await work(lock.store)
  } finally {
    // What was done is on disk, and what came of it is to be told.
    await lock.release().catch((error: unknown) => {
      if (!isExportError(error)) throw error
      warn(`the lock could not be given back: ${error.message}`)
    })
  }
}
