export type { Begun, BegunChain, PlannedChain } from './chains.ts'
export { type Plan, planPartitions } from './plan.ts'
