export {
  type Continuation,
  openOwnCheckpoint,
  readBegunCheckpoint,
  readOwnCheckpoint,
  redoPartitions,
  requireSameRun,
} from './open-checkpoint.ts'
export { warnOfOpenDoors } from './open-to-all.ts'
export { requirePolicies } from './require-policies.ts'
