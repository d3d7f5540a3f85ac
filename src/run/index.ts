export {
  InTurn,
  MARGIN,
  type Pace,
  type RateLimit,
  sleepUntil,
  type Turn,
  WIDER,
  WIDEST,
} from '../extract/index.ts'
export { readEvidence } from './evidence.ts'
export { type LoadedAhead, type LoadOptions, type LoadSummary, loadWarehouse } from './load-warehouse.ts'
export type { PartitionStatus } from './partition-status.ts'
export { type PlanReport, type QueryPlan, readPlan } from './plan.ts'
export { type PruneOptions, type PruneReport, planPruning, pruneDataSet } from './prune.ts'
export { type Answer, queryPipeline } from './query.ts'
export type { QueryStatus, Wanted } from './query-status.ts'
export { type ReadRowsOptions, readRows } from './read-rows.ts'
export { planRepair, type Repair } from './repair.ts'
export { type ReportedDataSet, type SummarizeOptions, summarizeDataSet } from './report/index.ts'
export { fetchReports, type ServiceCallOptions, type TokenTest, testToken } from './reports.ts'
export { ownCopy, runPipeline } from './run.ts'
export { SealedLoader, type SealedLoaderOptions } from './sealed-loader.ts'
export type { RunOptions } from './setting/index.ts'
export {
  type LogFields,
  type LogLevel,
  type OpeningStep,
  type Progress,
  type RetryWait,
  type RunObserver,
  type RunWaits,
  silentObserver,
} from './setting/index.ts'
export {
  type Begun,
  type Bench,
  beginSharedRun,
  endSharedRun,
  exportPart,
  leaveSharedRun,
  openBench,
  type Part,
  type PartEnding,
  readSharedRunOf,
  type SharedEnding,
} from './shared/index.ts'
export { type Signed, signDataSet } from './sign.ts'
export { readStatus, type SharedLines, type StatusReport } from './status.ts'
export type { RunSummary } from './summary.ts'
export { type Problem, type ProblemCause, type Verification, verifyDataSet } from './verify.ts'
