import type { BatchAllocator, DecodedPage, DecodePlan, PageContext } from '../core/index.ts'
import { credentialDecoder } from './credential-decoder.ts'
import { reportDecoder } from './reports.ts'

/**
 * Turns one response's bytes into a page. Its record batch overwrites them if their memory is shared and large enough: rows
 * then need no memory of their own, and none has to be collected. Nothing else that is returned points into them.
 */
export type Decoder = (body: Uint8Array, context: PageContext) => DecodedPage

/**
 * Makes the decoder of a run: flatten and mask, bytes in, columns out. It keeps its working memory from
 * page to page, so one decoder serves one page at a time. Decoding throws ExportError: 'transient' when
 * the bytes are no such response at all, 'data' when the response breaks the contract.
 * @throws ExportError 'config' when a policy needs a mask key and there is none
 */
export function createDecoder(plan: DecodePlan): Decoder {
  const decode = plan.resource === 'reports' ? reportDecoder(plan) : credentialDecoder(plan)
  return (body, context) =>
    decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength), context, roomIn(body.buffer))
}

function roomIn(response: ArrayBufferLike): BatchAllocator {
  return (bytes) =>
    response instanceof SharedArrayBuffer && bytes <= response.byteLength
      ? new Uint8Array(response, 0, bytes)
      : new Uint8Array(bytes)
}
