import type { HeaderEntry, NamedPipeline } from '../core/index.ts'
import { requireTablesToFollow } from '../open-tables/index.ts'
import { checkMaskKey, type Journal } from '../state/index.ts'
import { refuseLinks } from './files.ts'
import { readBegunCheckpoint } from './open-checkpoint.ts'
import type { Owner } from './recover.ts'
import { type SettleOptions, settle } from './settle.ts'

/**
 * How every change to a data set without a run begins and ends: it is refused where it could not be finished, and
 * settled after what it commits.
 * @param open the checkpoint
 * @param change commits the change
 * @returns what `change` returns; null: nothing is exported yet
 */
export async function changeHeld<T>(
  pipeline: NamedPipeline,
  owner: Owner,
  options: SettleOptions & { readonly maskKey: Uint8Array | null },
  open: (header: HeaderEntry) => Promise<Journal>,
  change: (journal: Journal) => Promise<T>,
): Promise<T | null> {
  const { store } = owner
  await refuseLinks(store)
  const found = await readBegunCheckpoint(pipeline, store)
  if (found === null) return null
  await requireTablesToFollow(store, { ...pipeline.load.tables, dataSetId: found.header.data_set_id })
  checkMaskKey(found.header, options.maskKey, pipeline)
  const journal = await open(found.header)
  try {
    const result = await change(journal)
    await settle(pipeline, store, journal, options)
    return result
  } finally {
    await journal.close()
  }
}
