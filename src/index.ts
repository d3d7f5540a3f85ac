export {
  type Environment,
  type Overrides,
  type PipelineSettings,
  pipelineJsonSchema,
  starterPipeline,
} from './config/index.ts'
export {
  type Auth,
  type BatchColumn,
  type Clock,
  type ErrorKind,
  ExportError,
  type ExtractSettings,
  type Format,
  isExportError,
  type LoadSettings,
  type Pipeline,
  type Query,
  type RowBatch,
  type RowValue,
  rowsOf,
  type ServiceSettings,
  systemClock,
  type TransformSettings,
  type WindowSettings,
} from './core/index.ts'
export {
  exportRows,
  pipelineFrom,
  type ReadSettings,
  readPipeline,
  readPlan,
  readStatus,
  runPipeline,
  type StatusSettings,
  verifyDataSet,
} from './library.ts'
export { version } from './package/index.ts'
export {
  type Answer,
  type LoadedAhead,
  type LoadOptions,
  type LoadSummary,
  type LogFields,
  type LogLevel,
  loadWarehouse,
  type PartitionStatus,
  type PlanReport,
  type Problem,
  type Progress,
  queryPipeline,
  type ReadRowsOptions,
  type ReportedDataSet,
  type RunObserver,
  type RunOptions,
  type RunSummary,
  readRows,
  SealedLoader,
  type SealedLoaderOptions,
  type StatusReport,
  type SummarizeOptions,
  summarizeDataSet,
  type Verification,
} from './run/index.ts'
export { type RunSettings, runOptions } from './run-options.ts'
export { type Sandbox, type SandboxOptions, startSandbox } from './sandbox/index.ts'
export type { Manifest, ManifestShard } from './state/index.ts'
export { type LoadMode, parseTarget, type Target } from './warehouse/index.ts'
