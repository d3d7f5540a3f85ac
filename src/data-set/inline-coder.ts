import { createEncoder, type EncodeSettings, type ShardCoder, shardCoder } from '../load/index.ts'

/** Encoding in the calling thread. */
export function inlineCoder(settings: EncodeSettings): ShardCoder {
  return shardCoder(createEncoder(settings))
}
