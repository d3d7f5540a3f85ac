import {
  ExportError,
  isExportError,
  nullIf,
  type Pipeline,
  plainError,
  type Store,
} from '../../core/index.ts'
import {
  type CatalogDeps,
  catalogTable,
  currentMetadata,
  loadCatalog,
  type RestCatalog,
} from '../../open-tables/index.ts'
import { tableOwner } from '../open/find-state.ts'
import { openStore } from '../open-store.ts'

export type CatalogComparison = {
  /** With its namespace. */
  readonly table: string
  /** What the catalog shows; null: no table, or not known. */
  readonly metadataLocation: string | null
  /** null: there is no table yet, or nothing is asked. */
  readonly inLine: boolean | null
  readonly problem: string | null
  /** Why it is another's, or cannot be compared; null: it could be. */
  readonly failure: ExportError | null
}

/**
 * Refuses what the end of a command would, before anything is changed or paid for. A catalog out of reach is no reason to
 * do nothing.
 * @param fresh the data set starts over as another one: its table leaves the catalog now
 * @throws CatalogError; with `fresh` also when the catalog is out of reach
 */
export async function requireCatalog(
  pipeline: Pipeline,
  store: Store,
  deps: CatalogDeps,
  fresh: boolean,
): Promise<void> {
  if (pipeline.load.catalog === null) return
  const { dataSetId } = await tableOwner(store)
  if (fresh) await inCatalog(pipeline, deps, false, (catalog) => catalog.drop(dataSetId))
  await inCatalog(pipeline, deps, true, (catalog) => catalog.look(dataSetId, true)).catch(nullIf('transient'))
}

/** Changes nothing, and asks once. null: the pipeline has no catalog. */
export async function compareCatalog(
  pipeline: Pipeline,
  deps: CatalogDeps,
): Promise<CatalogComparison | null> {
  const { catalog, tables } = pipeline.load
  if (catalog === null) return null
  const { isSameAddress } = await loadCatalog()
  const result = { table: catalogTable(catalog), metadataLocation: null, inLine: null, failure: null }
  try {
    const store = openStore(pipeline)
    const { dataSetId } = await tableOwner(store)
    const own = await currentMetadata(store, tables)
    const metadataLocation = await inCatalog(pipeline, deps, true, (client) => client.look(dataSetId, false))
    if (own === null && metadataLocation === null)
      return { ...result, problem: 'not there yet: the first run that has rows registers it' }
    const inLine = own !== null && isSameAddress(metadataLocation, own)
    const shown = metadataLocation === null ? 'it has no such table' : `it shows ${metadataLocation}`
    const problem = inLine ? null : `${shown}; the current metadata is ${own}`
    return { ...result, metadataLocation, inLine, problem }
  } catch (error) {
    if (!isExportError(error)) throw error
    return { ...result, inLine: false, problem: error.what, failure: error }
  }
}

/** The catalog does not do what it is asked for, or is out of reach. Rows are not concerned. */
class CatalogError extends ExportError {}

const SAFE =
  'The rows are safe; the catalog shows the state before, and the next command that changes the data set, such as `spillway tables`, brings it in line.'

/** @param isOnce whether each request is sent once @returns null: the pipeline has no catalog @throws CatalogError */
export async function inCatalog<T>(
  { load: { catalog: settings } }: Pipeline,
  deps: CatalogDeps,
  isOnce: boolean,
  work: (catalog: RestCatalog) => Promise<T>,
): Promise<T | null> {
  if (settings === null) return null
  const catalog = (await loadCatalog()).restCatalog(settings, deps, isOnce)
  try {
    await catalog.configure()
    return await work(catalog)
  } catch (cause) {
    if (!isExportError(cause) || cause.kind === 'interrupted') throw cause
    const next = cause.kind === 'config' ? cause.next : `${cause.next} ${SAFE}`
    throw new CatalogError({ ...plainError(cause), next, cause })
  } finally {
    await catalog.close()
  }
}

/** Whether an error is the catalog's alone: the data set itself is settled, but for what the catalog may still name. */
export function isOfCatalog(error: unknown): boolean {
  return error instanceof CatalogError || (error instanceof Error && error.cause instanceof CatalogError)
}
