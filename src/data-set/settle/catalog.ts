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
  const catalog = (await loadCatalog()).restCatalog(settings, deps)
  try {
    const { dataSetId } = await tableOwner(store)
    if (fresh) await ofCatalog(catalog.drop(dataSetId))
    await ofCatalog(catalog.look(dataSetId, true)).catch(nullIf('transient'))
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
  const { restCatalog, isSameAddress } = await loadCatalog()
  const result = { table: catalogTable(catalog), metadataLocation: null, inLine: null, failure: null }
  try {
    const store = openStore(pipeline)
    const { dataSetId } = await tableOwner(store)
    const own = await currentMetadata(store, tables)
    const client = restCatalog(catalog, deps)
    const metadataLocation = await ofCatalog(client.look(dataSetId, false)).finally(client.close)
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

/** @throws CatalogError for any other error than a stop */
export async function ofCatalog<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (!isExportError(cause) || cause.kind === 'interrupted') throw cause
    const next = cause.kind === 'config' ? cause.next : `${cause.next} ${SAFE}`
    throw new CatalogError({ ...plainError(cause), next, cause })
  }
}

/** Whether an error is the catalog's alone: the data set itself is settled, but for what the catalog may still name. */
export function isOfCatalog(error: unknown): boolean {
  return error instanceof CatalogError || (error instanceof Error && error.cause instanceof CatalogError)
}
