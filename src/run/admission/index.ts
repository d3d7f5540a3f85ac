export { type Continuation, openOwnCheckpoint, readOwnCheckpoint, redoPartitions } from './open-checkpoint.ts'
export { warnOfOpenDoors } from './open-to-all.ts'
export { requirePolicies } from './require-policies.ts'
