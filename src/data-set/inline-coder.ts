import {
  createEncoder,
  decodeRecordBatches,
  type EncodePlan,
  type ShardCoder,
  shardHash,
} from '../load/index.ts'

/** Encoding in the calling thread. */
export function inlineCoder(plan: EncodePlan): ShardCoder {
  const encoder = createEncoder(plan)
  return {
    header: async () => encoder.header(),
    encode: (recordBatches) => encoder.encode(decodeRecordBatches(recordBatches)),
    footer: (rowGroups) => encoder.footer(rowGroups),
    hash: shardHash,
  }
}
