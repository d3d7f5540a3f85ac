export { DELTA_FOLDER } from './delta/delta-log.ts'
export { ICEBERG_FOLDER, METADATA_FOLDER } from './iceberg/metadata.ts'
export type { TableState } from './table.ts'
export {
  mayHaveTables,
  removeTables,
  requireOwnTables,
  requireTablesToFollow,
  type TableProblem,
  tableProblems,
  updateTables,
} from './update-tables.ts'
