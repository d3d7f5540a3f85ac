/** Loaded only where a pipeline has a catalog: most have none. */
export const loadCatalog = () => import('./catalog/rest-catalog.ts')
export type { CatalogDeps, RestCatalog } from './catalog/rest-catalog.ts'
export {
  catalogTable,
  DELTA_FOLDER,
  ICEBERG_FOLDER,
  METADATA_FOLDER,
  type TableMark,
  type TableMarks,
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
