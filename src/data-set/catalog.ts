import { type ExportError, isExportError, type Log, type Pipeline, type Store } from '../core/index.ts'
import {
  type CatalogDeps,
  CatalogError,
  catalogTable,
  currentMetadata,
  loadCatalog,
  type TableState,
} from '../open-tables/index.ts'
import { catalogVariables } from '../pipeline/index.ts'
import { openDataSet } from './open-data-set.ts'
import { tableOwner } from './table-owner.ts'

export type CatalogSummary = {
  /** With its namespace. */
  readonly table: string
  /** What the catalog shows; null: no table. */
  readonly metadataLocation: string | null
  readonly inLine: boolean
}

/** null: the pipeline has no catalog, or there is no table yet. @throws CatalogError */
export async function showInCatalog(
  { load: { catalog } }: Pipeline,
  deps: CatalogDeps,
  uuid: string,
  tables: readonly TableState[],
): Promise<CatalogSummary | null> {
  const metadataLocation = tables.find(({ format }) => format === 'iceberg')?.metadataLocation ?? null
  if (catalog === null || metadataLocation === null) return null
  const { showTable } = await loadCatalog()
  await showTable(catalog, deps, { uuid, metadataLocation })
  return { table: catalogTable(catalog), metadataLocation, inLine: true }
}

export type CatalogComparison = Omit<CatalogSummary, 'inLine'> & {
  /** null: not compared, since a variable is not set. */
  readonly inLine: boolean | null
  readonly problem: string | null
  /** Why it is another's, or cannot be compared; null: it could be. */
  readonly failure: ExportError | null
}

/** Changes nothing, and asks once. null: the pipeline has no catalog. */
export async function compareCatalog(
  pipeline: Pipeline,
  deps: Omit<CatalogDeps, 'isBrief'>,
): Promise<CatalogComparison | null> {
  const { catalog, tables } = pipeline.load
  if (catalog === null) return null
  const table = catalogTable(catalog)
  const nothing = { table, metadataLocation: null, problem: null, failure: null }
  for (const name of catalogVariables(catalog)) {
    const isSet = (await deps.readSecret(name)) !== null
    if (!isSet) return { ...nothing, inLine: null, problem: `not compared: ${name} is not set` }
  }
  const { lookUpTable, requireOwnTable, shows } = await loadCatalog()
  const store = openDataSet(pipeline)
  try {
    const { dataSetId } = await tableOwner(store)
    const own = await currentMetadata(store, tables)
    const found = await lookUpTable(catalog, { ...deps, isBrief: true })
    if (found !== null) requireOwnTable(catalog, found, dataSetId)
    const metadataLocation = found?.metadataLocation ?? null
    const inLine = own === null ? found === null : shows(found, own)
    const shown = found === null ? 'it has no such table' : `it shows ${metadataLocation}`
    const problem = inLine ? null : `${shown}; the current metadata is ${own}`
    return { ...nothing, metadataLocation, inLine, problem }
  } catch (error) {
    if (!isExportError(error)) throw error
    return { ...nothing, inLine: false, problem: error.what, failure: error }
  }
}

/**
 * Refuses a table in the catalog that is another's. A catalog out of reach is no reason to export nothing.
 * @param fresh the data set starts over as another one: its table leaves the catalog now
 * @throws ExportError `config`, `credentials`; with `fresh` also when the catalog is out of reach
 */
export async function requireOwnInCatalog(
  { load: { catalog } }: Pipeline,
  store: Store,
  { onLog, ...deps }: CatalogDeps & { readonly onLog: Log },
  fresh: boolean,
): Promise<void> {
  if (catalog === null) return
  const { dataSetId } = await tableOwner(store)
  const { dropTable, lookUpTable, requireOwnTable } = await loadCatalog()
  if (fresh) return dropTable(catalog, deps, dataSetId)
  try {
    const found = await lookUpTable(catalog, { ...deps, isBrief: true })
    if (found !== null) requireOwnTable(catalog, found, dataSetId)
  } catch (error) {
    if (!isExportError(error, 'transient', 'refused', 'data')) throw error
    onLog('warn', `the catalog cannot be compared now: ${error.message}`)
  }
}

/** Whether an error is the catalog's alone: the data set itself is settled, but for what the catalog may still name. */
export function isOfCatalog(error: unknown): boolean {
  return error instanceof CatalogError || (error instanceof Error && error.cause instanceof CatalogError)
}
