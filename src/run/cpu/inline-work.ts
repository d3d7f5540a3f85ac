import type { DecodePage, DecodePlan } from '../../core/index.ts'
import { inlineCoder } from '../../data-set/index.ts'
import type { EncodePlan, ShardCoder } from '../../load/index.ts'
import { createDecoder } from '../../transform/index.ts'

/** Decoding and encoding in the calling thread. */
export function inlineWork(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
): { readonly decode: DecodePage; readonly coder: ShardCoder } {
  const decode = createDecoder(decodePlan)
  return { decode: async (body, context) => decode(body, context), coder: inlineCoder(encodePlan) }
}
