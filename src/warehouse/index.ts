export type { DdlInput } from './ddl/dialect.ts'
export { DIALECT_NAMES, DIALECTS, type DialectName, tableMounts } from './ddl/index.ts'
export { DuckdbWarehouse } from './duckdb/duckdb.ts'
export { lacksDuckdb, type TargetWait } from './duckdb/instance.ts'
export {
  type QueryOptions,
  type QueryRow,
  type QuerySource,
  type QueryStream,
  queryDataSet,
} from './duckdb/query.ts'
export { type LoadResult, loadDataSet, requireLoadable } from './load-data-set.ts'
export { PostgresWarehouse } from './postgres/postgres.ts'
export { lacksTls, withTls } from './postgres/postgres-connection.ts'
export { dataSetRows, shardRows } from './table/shard-rows.ts'
export { requireNames, tableOf } from './table/table.ts'
export { LOAD_MODES, type LoadMode, type Warehouse } from './table/warehouse.ts'
export { parseTarget, requireTarget, type Target } from './target.ts'
