/** Loaded only where a pipeline has a catalog: most have none. */
export const loadCatalog = () => import('./catalog/show-table.ts')
export {
  type CatalogDeps,
  CatalogError,
  catalogTable,
  DELTA_FOLDER,
  ICEBERG_FOLDER,
  METADATA_FOLDER,
  type TableOwner,
  type TableState,
} from './table.ts'
export {
  currentMetadata,
  mayHaveTables,
  removeTables,
  requireOwnTables,
  requireTablesToFollow,
  tableProblems,
  updateTables,
} from './update-tables.ts'
