export { searchesToSpend } from '../extract/index.ts'
export { clockCheck } from './admission/clock-check.ts'
export { requireRoom } from './chains/halt.ts'
export { type SharedThread, shareThread } from './cpu/cpu.ts'
export {
  flagsOf,
  type OpeningStep,
  type Progress,
  RUN_FLAGS,
  type RunFlags,
  type RunOptions,
} from './options.ts'
export { monthsNeeded, type PlanResult, readPlan, requestRate } from './plan.ts'
export { runPipeline } from './run.ts'
export {
  openReports,
  type Probe,
  probeService,
  type Report,
  type Reports,
  type SearchPath,
  type TokenTest,
  testService,
  testToken,
} from './service-calls.ts'
export { figuresJson, type RunSummary, reasonOf } from './summary.ts'
