import type { BatchAllocator, DecodePlan } from '../../core/index.ts'
import { createDecoder, type Decoder } from '../../transform/index.ts'

/**
 * A decoder that writes the rows of a page into the memory of its response, if that is shared and large enough. They
 * then need no memory of their own, and none has to be collected.
 */
export function inlineDecoder(plan: DecodePlan): Decoder {
  const decode = createDecoder(plan)
  return (body, context) => decode(body, context, sharedAllocator(body.buffer))
}

function sharedAllocator(response: ArrayBufferLike): BatchAllocator {
  return (bytes) =>
    response instanceof SharedArrayBuffer && bytes <= response.byteLength
      ? new Uint8Array(response, 0, bytes)
      : new Uint8Array(bytes)
}
