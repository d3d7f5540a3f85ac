export { type BegunPartitions, type Plan, planPartitions } from './plan.ts'
export { splitWindows } from './windows.ts'
