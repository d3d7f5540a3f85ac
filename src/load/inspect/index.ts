export { type InspectedShard, inspectShard } from './inspect-shard.ts'
export { readBatches } from './read-batches.ts'
export { readStatistics } from './read-statistics.ts'
export type { ShardReader } from './shard-reader.ts'
