import { createEncoder, type EncodePlan, type ShardCoder, shardCoder } from '../load/index.ts'

/** Encoding in the calling thread. */
export function inlineCoder(plan: EncodePlan): ShardCoder {
  return shardCoder(createEncoder(plan))
}
