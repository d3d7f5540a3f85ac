export type { Begun, BegunChain, PlannedChain } from './chains.ts'
export { type BegunQueries, type Plan, planPartitions, planWindows } from './plan.ts'
export { splitWindows } from './windows.ts'
