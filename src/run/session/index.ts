export { openShards } from './open-shards.ts'
export { decodePlan, encodePlan } from './plans.ts'
export { openSession, type Session } from './session.ts'
