import type { NamedPipeline, OwnedStore } from '../core/index.ts'
import { isOfCatalog, requireOwnInCatalog } from './catalog.ts'
import { refuseLinks } from './links.ts'
import { requireOwnCheckpoint } from './open-checkpoint.ts'
import { openChecked } from './recover.ts'
import { type SettleOptions, settle } from './settle.ts'
import type { ChangeOptions } from './swap.ts'

/** For a command that itself commits nothing. A catalog that is out of reach is tried again by the next command. */
export async function settleFirst(
  pipeline: NamedPipeline,
  store: OwnedStore,
  options: ChangeOptions & Pick<SettleOptions, 'bringTables'>,
): Promise<void> {
  await refuseLinks(store)
  const journal = await openChecked(store, null, async (state) => {
    if (state !== null) requireOwnCheckpoint(pipeline, state)
    await requireOwnInCatalog(pipeline, store, options, false)
    return []
  })
  if (journal === null) return
  try {
    await settle(pipeline, store, journal, options)
  } catch (error) {
    if (!isOfCatalog(error)) throw error
  } finally {
    await journal.close()
  }
}
