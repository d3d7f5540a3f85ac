export type { Begun, BegunChain, PlannedChain } from './chains.ts'
export { planFeeds } from './feeds.ts'
export { type Plan, planPartitions, windowAt } from './plan.ts'
