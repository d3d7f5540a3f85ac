export type { Begun, BegunChain, PlannedChain } from './chains.ts'
export { type BegunQueries, type Plan, planPartitions, splitWindows } from './plan.ts'
