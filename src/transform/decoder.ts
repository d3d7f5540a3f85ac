import { kindOfRows, type RowKind } from '../core/index.ts'
import type { DecodedPage, DecodeSettings, PageContext } from '../rows/index.ts'
import { PageReader } from './page-reader.ts'
import { reportDecoder } from './reports.ts'
import type { Decode } from './response.ts'

/** Decodes the bytes of one response into a page. Nothing in the result points into them. */
export type Decoder = (body: Uint8Array, context: PageContext) => DecodedPage

/**
 * One decoder serves one page at a time: it reuses its memory. Decoding throws ExportError 'transient' or 'shape' when
 * the bytes are not such a response, 'data' when the response violates the contract.
 * @throws ExportError 'config' when a policy needs a mask key and there is none
 */
export function createDecoder(settings: DecodeSettings): Decoder {
  const decode = DECODERS[kindOfRows(settings.resource)](settings)
  return (body, context) => decode(Buffer.from(body.buffer, body.byteOffset, body.byteLength), context)
}

const DECODERS: Readonly<Record<RowKind, (settings: DecodeSettings) => Decode>> = {
  credentials: credentialDecoder,
  reports: reportDecoder,
}

function credentialDecoder(settings: DecodeSettings): Decode {
  const reader = new PageReader(settings)
  return (body, context) => reader.read(body, context)
}
