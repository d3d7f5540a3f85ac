import type { NamedPipeline, Pipeline, Store } from '../core/index.ts'
import { requireTablesToFollow } from '../open-tables/index.ts'
import { type CheckpointState, checkMaskKey, type Journal } from '../state/index.ts'
import { requireOwnInCatalog } from './catalog.ts'
import { refuseLinks } from './links.ts'
import { readBegunCheckpoint } from './open-checkpoint.ts'
import { holdDataSet } from './open-data-set.ts'
import type { DataSetOptions } from './options.ts'
import { type Accept, type Change, NO_CHANGE, type Owner, openChecked } from './recover.ts'
import { settle } from './settle.ts'

/** What a change without a run needs. `build` is for the shard of a data set without rows. */
export type ChangeOptions = Pick<
  DataSetOptions,
  'clock' | 'stop' | 'onLog' | 'version' | 'build' | 'maskKey' | 'readSecret'
>

/** How a command changes a data set. */
export type Work<T> = {
  /** What needs nothing but the state, committed before shards are looked at. Default: nothing. */
  readonly first?: (state: CheckpointState) => Change
  /** Commits the rest. @returns the result */
  readonly change: (journal: Journal, owner: Owner) => Promise<T>
  /** Is called instead where nothing is exported yet. */
  readonly begin: (owner: Owner) => Promise<T>
}

/**
 * How every change to a data set without a run begins and ends: it is refused where it could not be finished, and
 * settled after what it commits.
 * @throws ExportError `locked` when a run holds the data set
 */
export function changeDataSet<T>(
  pipeline: NamedPipeline,
  options: ChangeOptions,
  { first, change, begin }: Work<T>,
): Promise<T> {
  const { clock, stop, onLog, maskKey } = options
  const warn = (message: string): void => onLog('warn', message)
  return holdDataSet(pipeline, { clock, stop, warn }, async (owner) => {
    const { store } = owner
    await refuseLinks(store)
    const found = await readChangeable(pipeline, store)
    if (found === null) return begin(owner)
    await requireOwnInCatalog(pipeline, store, options, false)
    const { header } = found
    checkMaskKey(header, maskKey, pipeline)
    const accept: Accept = async (state) => (state === null ? NO_CHANGE : (first?.(state) ?? NO_CHANGE))
    const journal = await openChecked(owner, header, onLog, accept)
    try {
      const result = await change(journal, owner)
      await settle(pipeline, store, journal, options)
      return result
    } finally {
      await journal.close()
    }
  })
}

/**
 * The checkpoint of a data set that can be changed, for the plan of a change as for the change itself. Changes nothing.
 * @returns null when nothing is exported yet
 * @throws ExportError when it is another pipeline's, or its tables could not follow
 */
export async function readChangeable(pipeline: Pipeline, store: Store): Promise<CheckpointState | null> {
  const found = await readBegunCheckpoint(pipeline, store)
  if (found === null) return null
  await requireTablesToFollow(store, { ...pipeline.load.tables, dataSetId: found.header.data_set_id })
  return found
}
