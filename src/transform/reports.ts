import {
  type DecodePlan,
  ExportError,
  encodeRecordBatch,
  type PageContext,
  type RefusedItem,
} from '../core/index.ts'
import { ChainIds } from './chain-ids.ts'
import { valueColumn } from './columns/value-columns.ts'
import { refusedId, reportQuarantine } from './quarantine.ts'
import { type Decode, pageLocation, parseResponse } from './response.ts'
import { REPORT_FIELDS, type Report, reportSchema, UnknownFields, unknownNames } from './schema.ts'

/** Decodes pages of reports. There are few reports, so this code is simple rather than fast. */
export function reportDecoder(plan: DecodePlan): Decode {
  const columns = plan.columns.map(({ name, type }) => ({
    name: name as keyof Report,
    values: valueColumn(type, false),
  }))
  const quarantine = reportQuarantine()
  const ids = new ChainIds()

  return (body, context, room) => {
    const { query } = context
    const { next, items } = parseResponse(body, context)
    let rows = 0
    const quarantined: RefusedItem[] = []
    const unknown = new UnknownFields()
    ids.begin(context)
    for (const { values } of columns) values.reset()
    for (const [index, item] of items.entries()) {
      const result = reportSchema.safeParse(item)
      const id = result.success ? result.data.id : refusedId(item)
      if (query.type === 'report' && id !== null && id !== query.id) throw wrongReport(context)
      const isNew = id === null || (result.success ? ids.isNewRow(id) : ids.isNewRefusal(id))
      if (!isNew) continue
      if (result.success) {
        rows++
        for (const { name, values } of columns) values.add(result.data[name] ?? null)
        unknown.countAll(unknownNames(item as object, REPORT_FIELDS))
      } else {
        quarantined.push(quarantine(item, result.error.issues, index))
      }
    }
    const recordBatch = {
      rows,
      groups: [],
      columns: columns.map(({ name, values }) => values.column(name, [])),
    }
    return {
      next,
      recordBatch: rows === 0 ? null : encodeRecordBatch(recordBatch, room),
      rows,
      items: items.length,
      repeated: ids.repeated,
      forgotten: [],
      met: ids.met,
      ids: ids.page(),
      times: null,
      span: null,
      quarantined,
      unknownFields: unknown.record(),
    }
  }
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
