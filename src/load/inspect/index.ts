export { inspectShard } from './inspect-shard.ts'
export type { InspectedShard, InspectOptions, ShardReader } from './inspector.ts'
export { readBatches } from './read-batches.ts'
export { type OnId, readIds } from './read-ids.ts'
