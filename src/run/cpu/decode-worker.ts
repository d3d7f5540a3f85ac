import { workerData } from 'node:worker_threads'
import type { DecodePlan, PageContext } from '../../core/index.ts'
import { serve } from '../../threads/index.ts'
import { createDecoder } from '../../transform/index.ts'

const decode = createDecoder(workerData as DecodePlan)

serve({
  async decode(body: Uint8Array, context: PageContext) {
    const page = decode(body, context)
    return { value: page, transfer: page.frame === null ? [] : [page.frame.buffer] }
  },
})
