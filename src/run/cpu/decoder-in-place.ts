import type { BatchAllocator, DecodePlan } from '../../core/index.ts'
import { createDecoder, type Decoder } from '../../transform/index.ts'

/**
 * A decoder that puts a page's rows where its answer lies, if that is shared memory and has room for them: so they
 * need no memory of their own, and none has to be collected.
 */
export function decoderInPlace(plan: DecodePlan): Decoder {
  const decode = createDecoder(plan)
  return (body, context) => decode(body, context, sharedAllocator(body.buffer))
}

function sharedAllocator(answer: ArrayBufferLike): BatchAllocator {
  return (bytes) =>
    answer instanceof SharedArrayBuffer && bytes <= answer.byteLength
      ? new Uint8Array(answer, 0, bytes)
      : new Uint8Array(bytes)
}
