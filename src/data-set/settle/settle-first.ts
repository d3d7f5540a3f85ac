import { type ExportError, isExportError, type NamedPipeline, type OwnedStore } from '../../core/index.ts'
import { refuseLinks } from '../open/links.ts'
import { openChecked } from '../open/open-checked.ts'
import { requireOwnCheckpoint } from '../open/open-checkpoint.ts'
import type { ChangeOptions } from '../swap.ts'
import { isOfCatalog, withCatalog } from './catalog.ts'
import { type SettleOptions, settle } from './settle.ts'

/**
 * For a command that itself commits nothing. A catalog that is out of reach is tried again by the next command.
 * @returns why the catalog is behind; null: it is not
 */
export async function settleFirst(
  pipeline: NamedPipeline,
  store: OwnedStore,
  options: ChangeOptions & Pick<SettleOptions, 'rebuild' | 'onTables'>,
): Promise<ExportError | null> {
  await refuseLinks(store)
  return withCatalog(pipeline, store, options, false, async (catalog) => {
    const journal = await openChecked(store, null, async (state) => {
      if (state !== null) requireOwnCheckpoint(pipeline, state)
      return []
    })
    if (journal === null) return null
    try {
      await settle(pipeline, store, journal, { ...options, catalog })
      return null
    } catch (error) {
      if (isExportError(error) && isOfCatalog(error)) return error
      throw error
    } finally {
      await journal.close()
    }
  })
}
