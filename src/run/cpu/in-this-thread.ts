import { createEncoder, type EncodeSettings, shardCoder } from '../../load/index.ts'
import type { DecodeSettings } from '../../rows/index.ts'
import { createDecoder } from '../../transform/index.ts'

export type InThisThread = ReturnType<typeof inThisThread>

/** Decodes and encodes in the calling thread. The module is loaded with the first page. */
export function inThisThread(decodeSettings: DecodeSettings, encodeSettings: EncodeSettings) {
  return {
    decode: createDecoder(decodeSettings),
    coder: shardCoder(createEncoder(encodeSettings)),
  }
}
