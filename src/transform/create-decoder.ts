import type { DecodedPage, DecodePlan, PageContext } from '../core/index.ts'
import { credentialDecoder } from './credential-decoder.ts'
import { reportDecoder } from './reports.ts'

/** Turns one answer's bytes into a page. The bytes are only read, and nothing returned points into them. */
export type Decoder = (body: Uint8Array, context: PageContext) => DecodedPage

/**
 * Makes the decoder of a run: flatten and mask, bytes in, columns out. It keeps its working memory from
 * page to page, so one decoder serves one page at a time. Decoding throws ExportError: 'transient' when
 * the bytes are no such answer at all, 'data' when the answer breaks the contract.
 * @throws ExportError 'config' when a policy needs a mask key and there is none
 */
export function createDecoder(plan: DecodePlan): Decoder {
  const decode = plan.resource === 'reports' ? reportDecoder(plan) : credentialDecoder(plan)
  return (body, context) => decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength), context)
}
