import type { BatchAllocator, DecodedPage, DecodePlan, PageContext } from '../core/index.ts'
import { credentialDecoder } from './credential-decoder.ts'
import { reportDecoder } from './reports.ts'

/**
 * Turns one response's bytes into a page. Nothing returned points into them but the record batch, if that gets its room where
 * they lie; once it has its room they are not looked at any more.
 * @param room for the record batch; by default fresh memory
 */
export type Decoder = (body: Uint8Array, context: PageContext, room?: BatchAllocator) => DecodedPage

/**
 * Makes the decoder of a run: flatten and mask, bytes in, columns out. It keeps its working memory from
 * page to page, so one decoder serves one page at a time. Decoding throws ExportError: 'transient' when
 * the bytes are no such response at all, 'data' when the response breaks the contract.
 * @throws ExportError 'config' when a policy needs a mask key and there is none
 */
export function createDecoder(plan: DecodePlan): Decoder {
  const decode = plan.resource === 'reports' ? reportDecoder(plan) : credentialDecoder(plan)
  return (body, context, room) =>
    decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength), context, room)
}
