import { type Clock, isExportError, type Pipeline, type Store } from '../../core/index.ts'
import { takeLock } from '../../state/index.ts'
import { growingFiles } from './data-set.ts'
import { openDataSet } from './open-data-set.ts'

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
