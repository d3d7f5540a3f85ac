export {
  type Continuation,
  openOwnCheckpoint,
  readBegunCheckpoint,
  readOwnCheckpoint,
  redoPartitions,
  requireSameRun,
} from './open-checkpoint.ts'
export { requirePolicies, warnOfOpenDoors } from './require-policies.ts'
