export {
  DELTA_FOLDER,
  ICEBERG_FOLDER,
  METADATA_FOLDER,
  type TableOwner,
  type TableState,
} from './table.ts'
export {
  mayHaveTables,
  removeTables,
  requireOwnTables,
  requireTablesToFollow,
  tableProblems,
  updateTables,
} from './update-tables.ts'
