export { serviceJson } from '../state/index.ts'
export { type Completeness, readCompleteness } from './completeness.ts'
export { type SharedCpu, shareCpu } from './cpu/index.ts'
export { readEvidence } from './evidence.ts'
export { type PlanReport, type QueryPlan, readPlan } from './plan.ts'
export { type Probe, probeService } from './probe.ts'
export { type PruneOptions, type PruneReport, planPruning, pruneDataSet } from './prune.ts'
export type { PartitionStatus, QueryStatus, Wanted } from './query-status.ts'
export { type ReadRowsOptions, readRows } from './read-rows.ts'
export { planRepair, type Repair } from './repair.ts'
export { type ReportedDataSet, type SummarizeOptions, summarizeDataSet } from './report/index.ts'
export {
  fetchReports,
  type SearchPath,
  type ServiceCallOptions,
  type TokenTest,
  testService,
  testToken,
} from './reports.ts'
export { ownCopy, runPipeline } from './run.ts'
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
export { type Signed, signDataSet } from './sign.ts'
export { readStatus, type StatusReport } from './status.ts'
export type { RunSummary } from './summary.ts'
export {
  type Answer,
  type AnswerStream,
  type LoadedAhead,
  type LoadOptions,
  type LoadSummary,
  loadWarehouse,
  type QuerySettings,
  queryPipeline,
  SealedLoader,
  type SealedLoaderOptions,
  streamQuery,
  tableStatements,
} from './tables/index.ts'
export { type Problem, type ProblemCause, type Verification, verifyDataSet } from './verify/index.ts'
