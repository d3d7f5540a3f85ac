import type { BatchAllocator, DecodePlan } from '../../core/index.ts'
import { createDecoder, type Decoder } from '../../transform/index.ts'

/**
 * A decoder that puts a page's rows where its response lies, if that is shared memory and has room for them: so they
 * need no memory of their own, and none has to be collected.
 */
export function decoderInPlace(plan: DecodePlan): Decoder {
  const decode = createDecoder(plan)
  return (body, context) => decode(body, context, sharedAllocator(body.buffer))
}

function sharedAllocator(response: ArrayBufferLike): BatchAllocator {
  return (bytes) =>
    response instanceof SharedArrayBuffer && bytes <= response.byteLength
      ? new Uint8Array(response, 0, bytes)
      : new Uint8Array(bytes)
}
