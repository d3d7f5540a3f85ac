export { fetchReport, type Report, Service } from '../extract/index.ts'
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
export { figuresJson, type RunSummary, reasonOf } from './summary.ts'
export { type SearchPath, type TokenTest, testService, testToken } from './test-service.ts'
