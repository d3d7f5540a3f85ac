import type { DecodePage, DecodeSettings } from '../../core/index.ts'
import { createEncoder, type EncodeSettings, type ShardCoder, shardCoder } from '../../load/index.ts'
import { createDecoder } from '../../transform/index.ts'

/** Decodes and encodes in the calling thread. The module is loaded with the first page. */
export function inThisThread(
  decodeSettings: DecodeSettings,
  encodeSettings: EncodeSettings,
): { readonly decode: DecodePage; readonly coder: ShardCoder } {
  const decode = createDecoder(decodeSettings)
  return {
    decode: async (body, context) => decode(body, context),
    coder: shardCoder(createEncoder(encodeSettings)),
  }
}
