import {
  createEncoder,
  type EncodePlan,
  encodeWithAggregates,
  type ShardCoder,
  shardHash,
} from '../load/index.ts'

/** Encoding in the calling thread. */
export function inlineCoder(plan: EncodePlan): ShardCoder {
  const encoder = createEncoder(plan)
  return {
    header: async () => encoder.header(),
    encode: (recordBatches) => encodeWithAggregates(encoder, recordBatches),
    footer: (rowGroups) => encoder.footer(rowGroups),
    hash: shardHash,
  }
}
