export {
  type Auth,
  type Clock,
  type ErrorKind,
  ExportError,
  type ExtractSettings,
  type Format,
  type LoadSettings,
  type LogFields,
  type LogLevel,
  type Pipeline,
  type Query,
  type ServiceSettings,
  type TransformSettings,
  type WindowSettings,
} from './core/index.ts'
export { type Problem, type ReadRowsOptions, readRows, type Verification } from './data-set/index.ts'
export {
  pipelineFrom,
  type ReadSettings,
  readPipeline,
  runPipeline,
  startSandbox,
  type VerifySettings,
  verifyDataSet,
} from './library.ts'
export type { Environment, Overrides, PipelineSettings } from './pipeline/index.ts'
export type {
  BatchColumn,
  BooleanColumn,
  IntegerColumn,
  ListColumn,
  RowBatch,
  TextColumn,
} from './rows/index.ts'
export type { Progress, RunOptions, RunSummary } from './run/index.ts'
export type { RunSettings } from './run-options.ts'
export type { Sandbox, SandboxOptions } from './sandbox/index.ts'
export type { ManifestShard } from './state/index.ts'
