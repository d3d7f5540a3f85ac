import { createEncoder, type EncodeSettings, type ShardCoder, shardCoder } from '../load/index.ts'

export function inlineCoder(settings: EncodeSettings): ShardCoder {
  return shardCoder(createEncoder(settings))
}
