import { workerData } from 'node:worker_threads'
import type { DecodedPage, DecodePlan, PageContext } from '../../core/index.ts'
import { serve } from '../../threads/index.ts'
import { decoderInPlace } from './decoder-in-place.ts'
import { owned } from './owned.ts'

const decode = decoderInPlace(workerData as DecodePlan)

serve({
  async decode(body: Uint8Array, context: PageContext) {
    const page = decode(body, context)
    return { value: page, transfer: transferred(page) }
  },
})

function transferred({ frame, ids }: DecodedPage): ArrayBuffer[] {
  return [...(frame === null ? [] : owned(frame.buffer)), ids.rows.buffer, ids.refused.buffer]
}
