import { type DecodePlan, decodeFrame } from '../core/index.ts'
import { createEncoder, type EncodePlan } from '../load/index.ts'
import { createDecoder } from '../transform/index.ts'
import type { Cpu } from './cpu-calls.ts'

/** Does the work in the calling thread. */
export function inlineCpu(decodePlan: DecodePlan, encodePlan: EncodePlan): Cpu {
  const decode = createDecoder(decodePlan)
  const encoder = createEncoder(encodePlan)
  return {
    decode: async (body, context) => decode(body, context),
    coder: {
      header: async () => encoder.header(),
      encode: (frames) => encoder.encode(frames.map(decodeFrame)),
      footer: (chunks) => encoder.footer(chunks),
    },
    close: async () => {},
  }
}
