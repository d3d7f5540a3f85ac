export { chunkRows, createEncoder, shardExtension } from './create-encoder.ts'
export type { EncodedChunk, EncodePlan, PlacedChunk, ShardEncoder } from './encoder.ts'
