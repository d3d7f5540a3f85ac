import { type ExportError, isExportError, nullIf, type Pipeline, type Store } from '../../core/index.ts'
import {
  type CatalogDeps,
  CatalogError,
  catalogTable,
  currentMetadata,
  loadCatalog,
  type RestCatalog,
} from '../../open-tables/index.ts'
import { openStore } from '../open-store.ts'
import { tableOwner } from './update-tables.ts'

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
 * Opens the catalog for a command, and refuses what its end would before anything is changed or paid for. A catalog out of
 * reach is no reason to do nothing.
 * @param fresh the data set starts over as another one: its table leaves the catalog now @param work null: there is none
 * @throws CatalogError; with `fresh` also when the catalog is out of reach
 */
export async function withCatalog<T>(
  { load: { catalog: settings } }: Pipeline,
  store: Store,
  deps: CatalogDeps,
  fresh: boolean,
  work: (catalog: RestCatalog | null) => Promise<T>,
): Promise<T> {
  if (settings === null) return work(null)
  const catalog = new (await loadCatalog()).RestCatalog(settings, deps)
  try {
    const { dataSetId } = await tableOwner(store)
    if (fresh) await catalog.drop(dataSetId)
    await catalog.look(dataSetId, true).catch(nullIf('transient'))
    return await work(catalog)
  } finally {
    await catalog.close()
  }
}

/** Changes nothing, and asks once. null: the pipeline has no catalog. */
export async function compareCatalog(
  pipeline: Pipeline,
  deps: CatalogDeps,
): Promise<CatalogComparison | null> {
  const { catalog, tables } = pipeline.load
  if (catalog === null) return null
  const { RestCatalog, isSameAddress } = await loadCatalog()
  const client = new RestCatalog(catalog, deps)
  const result = { table: catalogTable(catalog), metadataLocation: null, inLine: null, failure: null }
  try {
    const store = openStore(pipeline)
    const { dataSetId } = await tableOwner(store)
    const own = await currentMetadata(store, tables)
    const metadataLocation = await client.look(dataSetId, false)
    if (own === null && metadataLocation === null)
      return { ...result, problem: 'not there yet: the first run that has rows registers it' }
    const inLine = own !== null && metadataLocation !== null && isSameAddress(own, metadataLocation)
    const shown = metadataLocation === null ? 'it has no such table' : `it shows ${metadataLocation}`
    const problem = inLine ? null : `${shown}; the current metadata is ${own}`
    return { ...result, metadataLocation, inLine, problem }
  } catch (error) {
    if (!isExportError(error)) throw error
    return { ...result, inLine: false, problem: error.what, failure: error }
  } finally {
    await client.close()
  }
}

/** Whether an error is the catalog's alone: the data set itself is settled, but for what the catalog may still name. */
export function isOfCatalog(error: unknown): boolean {
  return error instanceof CatalogError || (error instanceof Error && error.cause instanceof CatalogError)
}
