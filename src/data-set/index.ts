export { bringTables, type TableSummary } from './bring-tables.ts'
export {
  type CatalogComparison,
  compareCatalog,
  isOfCatalog,
  withCatalog,
} from './catalog.ts'
export { clearDataSet } from './clear-data-set.ts'
export { type CompactResult, compactDataSet, manySmallShards } from './compact/compact.ts'
export { type Described, describeDataSet, type Use } from './described.ts'
export { type ForgetResult, forgetPeople } from './forget/forget.ts'
export { type LackingColumns, lackingColumns } from './lacking-columns.ts'
export { leftOutText, sumOfReasons } from './left-out.ts'
export { refuseLinks } from './links.ts'
export { digestColumn } from './match/columns.ts'
export { decoded } from './match/csv-table.ts'
export { type Directory, readDirectory } from './match/directory.ts'
export { identitiesIn } from './match/identities.ts'
export { type Match, type Matches, matchPeople } from './match/match.ts'
export {
  type Continuation,
  type OwnSchema,
  openOwnJournal,
  readOwnCheckpoint,
  requireFit,
} from './open-checkpoint.ts'
export {
  holdDataSet,
  namingLocations,
  openDataSet,
  pathIn,
  probe,
  requireFolder,
  requireReachable,
  withLocation,
} from './open-data-set.ts'
export { requireOwnTables } from './open-tables.ts'
export type { DataSetOptions } from './options.ts'
export { type PlanResult, readPlan, requestRate, withRest } from './plan.ts'
export { countPartitions, isPlanDone, type PlanCounts, planFor } from './plan-state.ts'
export { type PruneResult, pruneDataSet } from './prune/prune.ts'
export { allowedOf } from './quarantine-limit.ts'
export { namePipeline, type QuerySecrets, readQuerySecrets, requireSendableToken } from './queries.ts'
export { type ReadRowsOptions, readRows } from './read-rows.ts'
export { recordFailedStart } from './record-start.ts'
export { invalidationOf, planRedo, redoEntry } from './redo/invalidate.ts'
export { requirePolicies } from './require-policies.ts'
export { writingOf } from './rewriting.ts'
export { scopeOf } from './scope.ts'
export { settle } from './settle.ts'
export { shardSetOptions } from './shard-set-options.ts'
export { readEvidence, type Signed, signDataSet } from './sign.ts'
export { removeFailedStart } from './start.ts'
export {
  type PartitionFilter,
  type PartitionStatus,
  type QueryStatus,
  readStatus,
  type StatusResult,
  statusByQuery,
  statusOfEach,
} from './status.ts'
export { unmark } from './success-mark.ts'
export {
  bringVerdict,
  type SummarizedDataSet,
  type SummarizeOptions,
  summarizeDataSet,
} from './summary-page/write-summary-page.ts'
export { readSuppression } from './suppression.ts'
export type { ChangeOptions } from './swap.ts'
export { readVerdict, standingOf, verdictOf } from './verdict.ts'
export { type Verification, verifyDataSet } from './verify/verify.ts'
export type { Problem, ProblemCause } from './verify/verify-shard.ts'
export {
  type LoadOptions,
  type LoadSummary,
  loadWarehouse,
  requireTable,
  syncStatements,
  tableStatements,
} from './warehouse/load-warehouse.ts'
export {
  type QueryResult,
  type QuerySettings,
  type QueryStream,
  queryPipeline,
  streamQuery,
} from './warehouse/query.ts'
