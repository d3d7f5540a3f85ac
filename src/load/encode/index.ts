export { chunkRows, createEncoder, shardExtension } from './create-encoder.ts'
export type { EncodedChunk, EncodePlan, JsonValue, PlacedChunk, ShardEncoder } from './encoder.ts'
