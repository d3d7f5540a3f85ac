import { ExportError, kindOfRows, type RowKind } from '../core/index.ts'
import type { DecodedPage, DecodeSettings, PageContext } from '../rows/index.ts'
import { ChainIds } from './chain-ids.ts'
import { CredentialColumns } from './columns/credential-columns.ts'
import type { PageTools } from './credential-page.ts'
import { ExtraReader } from './extra/extra-reader.ts'
import { masksOf } from './mask/mask.ts'
import { Suppression } from './mask/suppression.ts'
import { PageReader } from './page-reader.ts'
import { plainDecoder } from './plain-items.ts'
import { credentialQuarantine } from './quarantine.ts'
import { type Decode, pageLocation } from './response.ts'
import { RowTexts } from './row-texts.ts'
import { reportSchema } from './schema.ts'

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
  const reader = new PageReader(settings, pageTools(settings))
  return (body, context) => reader.read(body, context)
}

export function pageTools(settings: DecodeSettings): PageTools {
  const masks = masksOf(settings)
  const texts = new RowTexts(settings)
  return {
    columns: new CredentialColumns(settings, masks),
    ids: new ChainIds(),
    quarantine: credentialQuarantine(masks, settings.extras, texts),
    extras: settings.extras.length === 0 ? null : new ExtraReader(settings.extras),
    texts,
    suppression: Suppression.of(settings.suppress),
  }
}

export function reportDecoder(settings: DecodeSettings): Decode {
  return plainDecoder(settings, reportSchema, (id, context) => {
    const { query } = context
    if (query.type !== 'report' || id === query.id) return null
    return new ExportError({
      kind: 'data',
      what: 'The response holds another report than the requested one',
      where: pageLocation(context),
      next: 'Check service.report_path, and proxies and caches before the service: a cache may mix up responses.',
    })
  })
}
