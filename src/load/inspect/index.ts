export { type InspectedShard, inspectShard } from './inspect-shard.ts'
export { readStatistics } from './parquet-reader.ts'
export { readBatches, type Wanted } from './read-batches.ts'
export type { ShardReader } from './shard-reader.ts'
