export { serviceJson } from '../state/index.ts'
export { type Completeness, readCompleteness } from './completeness.ts'
export { type SharedCpu, shareCpu } from './cpu/cpu.ts'
export { readEvidence } from './evidence.ts'
export { type PlanReport, type QueryPlan, readPlan } from './plan.ts'
export { type Probe, probeService } from './probe.ts'
export { type PruneOptions, type PruneReport, planPruning, pruneDataSet } from './prune.ts'
export type { PartitionStatus, QueryStatus, Wanted } from './query-status.ts'
export { type ReadRowsOptions, readRows } from './read-rows.ts'
export { planRepair, type Repair } from './repair.ts'
export { type ReportedDataSet, type SummarizeOptions, summarizeDataSet } from './report/summarize.ts'
export {
  fetchReports,
  type SearchPath,
  type ServiceCallOptions,
  type TokenTest,
  testService,
  testToken,
} from './reports.ts'
export { ownCopy, runPipeline } from './run.ts'
export {
  type LogFields,
  type LogLevel,
  type OpeningStep,
  type Progress,
  type RetryWait,
  type RunObserver,
  type RunWaits,
  silentObserver,
} from './setting/observer.ts'
export type { RunOptions } from './setting/options.ts'
export { type Signed, signDataSet } from './sign.ts'
export { readStatus, type StatusReport } from './status.ts'
export type { RunSummary } from './summary.ts'
export { tableStatements } from './tables/ddl.ts'
export {
  type LoadedAhead,
  type LoadOptions,
  type LoadSummary,
  loadWarehouse,
} from './tables/load-warehouse.ts'
export {
  type Answer,
  type AnswerStream,
  type QuerySettings,
  queryPipeline,
  streamQuery,
} from './tables/query.ts'
export { SealedLoader, type SealedLoaderOptions } from './tables/sealed-loader.ts'
export { type Problem, type ProblemCause, type Verification, verifyDataSet } from './verify/verify.ts'
