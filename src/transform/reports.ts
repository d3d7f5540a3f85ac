import { ExportError } from '../core/index.ts'
import type { DecodeSettings, PageContext } from '../rows/index.ts'
import { plainDecoder } from './plain-items.ts'
import { type Decode, pageLocation } from './response.ts'
import { reportSchema } from './schema.ts'

/** Decodes pages of reports. */
export function reportDecoder(settings: DecodeSettings): Decode {
  return plainDecoder(settings, reportSchema, (id, context) => {
    const { query } = context
    return query.type === 'report' && id !== query.id ? wrongReport(context) : null
  })
}

/** The response has another report than the one requested. */
function wrongReport(context: PageContext): ExportError {
  return new ExportError({
    kind: 'data',
    what: 'The response holds another report than the requested one',
    where: pageLocation(context),
    next: 'Check service.report_path, and proxies and caches before the service: a cache may mix up responses.',
  })
}
