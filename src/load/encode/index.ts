export { createEncoder, rowGroupRows, shardExtension } from './create-encoder.ts'
export type { EncodedRowGroup, EncodePlan, ShardEncoder, WrittenRowGroup } from './encoder.ts'
