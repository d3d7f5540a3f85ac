export { inspectShard } from './inspect-shard.ts'
export type { InspectedShard, InspectOptions, ShardReader } from './inspector.ts'
