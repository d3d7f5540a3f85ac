export { requireRoom } from './follow/halt.ts'
export {
  flagsOf,
  type OpeningStep,
  type Progress,
  RUN_FLAGS,
  type RunFlags,
  type RunOptions,
} from './options.ts'
export { runPipeline } from './run.ts'
export {
  openReports,
  type Report,
  type Reports,
  type SearchPath,
  type TokenTest,
  testService,
  testToken,
} from './service-calls.ts'
export { figuresJson, type RunSummary, reasonOf } from './summary.ts'
