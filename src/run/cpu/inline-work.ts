import type { DecodePage, DecodePlan } from '../../core/index.ts'
import {
  createEncoder,
  type EncodePlan,
  encodeWithAggregates,
  type ShardCoder,
  shardHash,
} from '../../load/index.ts'
import { createDecoder } from '../../transform/index.ts'

/** Decoding and encoding in the calling thread. */
export function inlineWork(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
): { readonly decode: DecodePage; readonly coder: ShardCoder } {
  const decode = createDecoder(decodePlan)
  return { decode: async (body, context) => decode(body, context), coder: inlineCoder(encodePlan) }
}

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
