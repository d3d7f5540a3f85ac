export type { Begun, BegunChain, PlannedChain } from './chains.ts'
export { type BegunQueries, type Plan, planPartitions } from './plan.ts'
export { splitWindows } from './windows.ts'
