import type { DecodePage, DecodePlan } from '../../core/index.ts'
import { createEncoder, type EncodePlan, type ShardCoder, shardCoder } from '../../load/index.ts'
import { createDecoder } from '../../transform/index.ts'

/** Decodes and encodes in the calling thread. The module is loaded with the first page. */
export function inThisThread(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
): { readonly decode: DecodePage; readonly coder: ShardCoder } {
  const decode = createDecoder(decodePlan)
  return {
    decode: async (body, context) => decode(body, context),
    coder: shardCoder(createEncoder(encodePlan)),
  }
}
