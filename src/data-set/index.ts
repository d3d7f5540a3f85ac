export { admitRun, columnChanges, requireFit } from './admission.ts'
export { bringTables, type TableSummary } from './commands/bring-tables.ts'
export { type CompactResult, compactDataSet, manySmallShards } from './commands/compact.ts'
export { type ForgetResult, forgetPeople } from './commands/forget/forget.ts'
export { decoded } from './commands/match/csv-table.ts'
export { type Directory, digestColumn, readDirectory } from './commands/match/directory.ts'
export { identitiesIn } from './commands/match/identities.ts'
export { type Match, type Matches, matchPeople } from './commands/match/match.ts'
export { type PruneResult, pruneDataSet } from './commands/prune.ts'
export { type ReadRowsOptions, readRows } from './commands/read-rows.ts'
export { readEvidence, type Signed, signDataSet } from './commands/sign.ts'
export { summarizeDataSet } from './commands/summary.ts'
export { type Verification, verifyDataSet } from './commands/verify/verify.ts'
export type { Problem, ProblemCause } from './commands/verify/verify-shard.ts'
export {
  type LoadOptions,
  type LoadSummary,
  loadWarehouse,
  requireTable,
  syncStatements,
  tableStatements,
} from './commands/warehouse/load-warehouse.ts'
export {
  type QueryResult,
  type QuerySettings,
  type QueryStream,
  queryDataSet,
  streamQuery,
} from './commands/warehouse/query.ts'
export { DataSet, type Use } from './data-set.ts'
export { clearDataSet } from './open/clear-data-set.ts'
export { openChecked } from './open/open-checked.ts'
export { type QuerySecrets, readyToRun } from './open/ready-to-run.ts'
export { recordFailedStart, removeFailedStart } from './open/record-start.ts'
export {
  namingLocations,
  openStore,
  pathIn,
  probe,
  requireFolder,
  withLocation,
  withLock,
} from './open-store.ts'
export type { ChangeOptions, WriteOptions } from './options.ts'
export {
  allowedOf,
  type LackingColumns,
  lackingColumns,
  lackingText,
  leftOutText,
  sumOfReasons,
} from './plan/left-out.ts'
export { type PlanResult, readPlan, requestRate, withRest } from './plan/plan.ts'
export { countPartitions, isDone, type PlanCounts, planFor, planOfFile } from './plan/plan-state.ts'
export { scopeOf } from './plan/scope.ts'
export {
  type PartitionFilter,
  type PartitionStatus,
  type QueryStatus,
  readStatus,
  type StatusResult,
} from './plan/status.ts'
export { readVerdict } from './plan/verdict.ts'
export { newNames } from './queries.ts'
export { type Invalidation, invalidationOf, planRedo, redoEntry } from './redo/invalidate.ts'
export { writingOf } from './rewriting.ts'
export {
  type CatalogComparison,
  compareCatalog,
  isOfCatalog,
  withCatalog,
} from './settle/catalog.ts'
export { unmark } from './settle/publish.ts'
export { settle } from './settle/settle.ts'
export { bringVerdict } from './settle/summary-page.ts'
export { requireOwnTables } from './settle/update-tables.ts'
export { WritableDataSet } from './writable-data-set.ts'
