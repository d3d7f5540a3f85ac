import { ExportError } from '../core/index.ts'
import { type DecodeSettings, encodeRecordBatch, type PageContext, type RejectedItem } from '../rows/index.ts'
import { ChainIds } from './chain-ids.ts'
import { type ColumnValue, valueColumn } from './columns/value-columns.ts'
import { plainQuarantine, rejectedId } from './quarantine.ts'
import { type Decode, pageLocation, parseResponse } from './response.ts'
import { REPORT_FIELDS, reportSchema, UnknownFields, unknownNames } from './schema.ts'

/** Reports hold no secret and no identity: their fields become columns of the same names. */
export function reportDecoder(settings: DecodeSettings): Decode {
  const columns = settings.columns.map(({ name, type }) => ({ name, values: valueColumn(type, false) }))
  const quarantine = plainQuarantine(REPORT_FIELDS)
  const ids = new ChainIds()

  return (body, context) => {
    const { next, items } = parseResponse(body, context)
    let rows = 0
    const quarantined: RejectedItem[] = []
    const unknown = new UnknownFields()
    ids.begin(context)
    for (const { values } of columns) values.reset()
    for (const [index, item] of items.entries()) {
      const { data, error } = reportSchema.safeParse(item)
      const id = data?.id ?? rejectedId(item)
      if (context.query.type === 'report' && id !== null && id !== context.query.id)
        throw anotherReport(context)
      if (data === undefined) {
        if (id === null || ids.isNewRejection(id)) quarantined.push(quarantine(item, error.issues, index))
        continue
      }
      if (ids.isKnownRow(data.id) || !ids.isNewRow(data.id)) continue
      rows++
      const fields: Readonly<Record<string, ColumnValue | undefined>> = data
      for (const { name, values } of columns) values.add(fields[name] ?? null)
      unknown.countAll(unknownNames(item as object, REPORT_FIELDS))
    }
    const recordBatch = {
      rows,
      groups: [],
      columns: columns.map(({ name, values }) => values.column(name, [])),
    }
    return {
      next,
      recordBatch: rows === 0 ? null : encodeRecordBatch(recordBatch),
      rows,
      items: items.length,
      repeated: ids.repeated,
      forgotten: [],
      met: false,
      ids: ids.page(),
      times: null,
      span: null,
      quarantined,
      unknownFields: unknown.record(),
    }
  }
}

function anotherReport(context: PageContext): ExportError {
  return new ExportError({
    kind: 'data',
    what: 'The response holds another report than the requested one',
    where: pageLocation(context),
    next: 'Check service.report_path, and proxies and caches before the service: a cache may mix up responses.',
  })
}
