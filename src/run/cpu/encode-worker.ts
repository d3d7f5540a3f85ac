import { workerData } from 'node:worker_threads'
import { decodeFrame } from '../../core/index.ts'
import { createEncoder, type EncodePlan, encodeSummed, type PlacedChunk } from '../../load/index.ts'
import { serve } from '../../threads/index.ts'
import { owned } from './owned.ts'

const encoder = createEncoder(workerData as EncodePlan)

serve({
  header: async () => ({ value: encoder.header() }),
  async encode(frames: readonly Uint8Array[]) {
    const value = await encodeSummed(encoder, frames.map(decodeFrame))
    return { value, transfer: owned(value.bytes.buffer) }
  },
  footer: async (chunks: readonly PlacedChunk[]) => ({ value: await encoder.footer(chunks) }),
})
