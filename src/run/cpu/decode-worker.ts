import type { DecodedPage, DecodePlan, PageContext } from '../../core/index.ts'
import { owned, serve } from '../../threads/index.ts'
import { createDecoder, type Decoder } from '../../transform/index.ts'

/** The decoders of the runs that share the thread, by number. */
const decoders = new Map<number, Decoder>()

serve({
  async open(run: number, plan: DecodePlan) {
    decoders.set(run, createDecoder(plan))
    return { value: null }
  },
  async decode(run: number, body: Uint8Array, context: PageContext) {
    const page = decoders.get(run)!(body, context)
    return { value: page, transfer: transferred(page) }
  },
  async close(run: number) {
    return { value: decoders.delete(run) }
  },
})

function transferred({ recordBatch, ids }: DecodedPage): ArrayBuffer[] {
  return [...(recordBatch === null ? [] : owned(recordBatch.buffer)), ids.rows.buffer, ids.refused.buffer]
}
