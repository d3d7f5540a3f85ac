export { bringTables, type TableSummary } from './commands/bring-tables.ts'
export { type CompactResult, compactDataSet, manySmallShards } from './commands/compact/compact.ts'
export { type ForgetResult, forgetPeople } from './commands/forget/forget.ts'
export { digestColumn } from './commands/match/columns.ts'
export { decoded } from './commands/match/csv-table.ts'
export { type Directory, readDirectory } from './commands/match/directory.ts'
export { identitiesIn } from './commands/match/identities.ts'
export { type Match, type Matches, matchPeople } from './commands/match/match.ts'
export { type PruneResult, pruneDataSet } from './commands/prune/prune.ts'
export { type ReadRowsOptions, readRows } from './commands/read-rows.ts'
export { readEvidence, type Signed, signDataSet } from './commands/sign.ts'
export {
  bringVerdict,
  type SummarizedDataSet,
  type SummarizeOptions,
  summarizeDataSet,
} from './commands/summary-page/write-summary-page.ts'
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
  queryPipeline,
  streamQuery,
} from './commands/warehouse/query.ts'
export { type Described, describeDataSet, type Use } from './described.ts'
export type { ChangeOptions } from './hold.ts'
export { clearDataSet } from './open/clear-data-set.ts'
export { refuseLinks } from './open/links.ts'
export {
  type Continuation,
  type OwnSchema,
  openOwnJournal,
  readOwnCheckpoint,
  requireFit,
} from './open/open-checkpoint.ts'
export { recordFailedStart } from './open/record-start.ts'
export { requirePolicies } from './open/require-policies.ts'
export { removeFailedStart } from './open/start.ts'
export {
  holdDataSet,
  namingLocations,
  openStore,
  pathIn,
  probe,
  requireFolder,
  requireReachable,
  withLocation,
} from './open-store.ts'
export type { DataSetOptions } from './options.ts'
export { type LackingColumns, lackingColumns, lackingText } from './plan/lacking-columns.ts'
export { leftOutText, sumOfReasons } from './plan/left-out.ts'
export { type PlanResult, readPlan, requestRate, withRest } from './plan/plan.ts'
export { countPartitions, isPlanDone, type PlanCounts, planFor } from './plan/plan-state.ts'
export { allowedOf } from './plan/quarantine-limit.ts'
export { scopeOf } from './plan/scope.ts'
export {
  type PartitionFilter,
  type PartitionStatus,
  type QueryStatus,
  readStatus,
  type StatusResult,
  statusByQuery,
  statusOfEach,
} from './plan/status.ts'
export { readVerdict, standingOf, verdictOf } from './plan/verdict.ts'
export { namePipeline, type QuerySecrets, readQuerySecrets, requireSendableToken } from './queries.ts'
export { invalidationOf, planRedo, redoEntry } from './redo/invalidate.ts'
export { writingOf } from './rewriting.ts'
export {
  type CatalogComparison,
  compareCatalog,
  isOfCatalog,
  withCatalog,
} from './settle/catalog.ts'
export { settle } from './settle/settle.ts'
export { unmark } from './settle/success-mark.ts'
export { requireOwnTables } from './settle/update-tables.ts'
