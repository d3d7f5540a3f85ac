export {
  type Environment,
  type Overrides,
  pipelineJsonSchema,
  type ReadOptions,
  readPipeline,
  starterPipeline,
} from './config/index.ts'
export {
  type Clock,
  type ErrorKind,
  ExportError,
  isExportError,
  type Pipeline,
  systemClock,
} from './core/index.ts'
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
  type RunObserver,
  type RunOptions,
  type RunSummary,
  readPlan,
  readStatus,
  runPipeline,
  SealedLoader,
  type SealedLoaderOptions,
  type StatusReport,
  type Verification,
  verifyDataSet,
} from './run/index.ts'
export { type RunSettings, runOptions } from './run-options.ts'
export { type Sandbox, type SandboxOptions, startSandbox } from './sandbox/index.ts'
export type { Manifest, ManifestShard } from './state/index.ts'
export { type LoadMode, parseTarget, type Target } from './warehouse/index.ts'
