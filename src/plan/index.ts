export {
  type Begun,
  type BegunChain,
  type BegunQueries,
  type Plan,
  type PlannedChain,
  planPartitions,
} from './plan.ts'
export { splitWindows } from './windows.ts'
