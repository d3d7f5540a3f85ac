export { serviceJson } from '../state/index.ts'
export { clockCheck } from './admission/clock-check.ts'
export { type SharedCpu, shareCpu } from './cpu/cpu.ts'
export { type Completeness, leftOutClauses, leftOutText, readCompleteness } from './data-set/completeness.ts'
export { planRepair, type Repair } from './data-set/invalidate.ts'
export {
  type ForgetOptions,
  type ForgetResult,
  forgetPeople,
  planForgetting,
  readForgottenPeople,
} from './forget.ts'
export { bringTables, type TableSummary, type TablesOptions } from './open-tables.ts'
export type {
  OpeningStep,
  Progress,
  RunOptions,
} from './options.ts'
export { type PlanResult, readPlan } from './plan.ts'
export { type PruneResult, planPruning, pruneDataSet } from './prune.ts'
export { type ReadRowsOptions, readRows } from './read-rows.ts'
export {
  type SummarizedDataSet,
  type SummarizeOptions,
  summarizeDataSet,
} from './report/write-summary-page.ts'
export { frozenCopy, runPipeline } from './run.ts'
export {
  fetchReports,
  type Probe,
  probeService,
  type SearchPath,
  type TokenTest,
  testService,
  testToken,
} from './service-calls.ts'
export { readEvidence, type Signed, signDataSet } from './sign.ts'
export {
  type PartitionFilter,
  type PartitionStatus,
  type QueryStatus,
  readStatus,
  type StatusResult,
} from './status.ts'
export { figuresJson, type RunSummary } from './summary.ts'
export {
  type LoadedEarlier,
  type LoadOptions,
  type LoadSummary,
  loadWarehouse,
  tableStatements,
} from './tables/load-warehouse.ts'
export {
  type QueryResult,
  type QuerySettings,
  type QueryStream,
  queryPipeline,
  streamQuery,
} from './tables/query.ts'
export { SealedLoader } from './tables/sealed-loader.ts'
export { type Verification, verifyDataSet } from './verify/verify.ts'
export type { Problem, ProblemCause } from './verify/verify-shard.ts'
