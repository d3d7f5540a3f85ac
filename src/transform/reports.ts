import {
  type BatchAllocator,
  type Column,
  type ColumnSpec,
  type DecodedPage,
  type DecodePlan,
  ExportError,
  encodeRecordBatch,
  type Int64,
  type PageContext,
  type RefusedItem,
  type Vector,
} from '../core/index.ts'
import { ChainIds } from './chain-ids.ts'
import { BooleanList, NumberList } from './columns/lists.ts'
import { ListList, TextList } from './columns/text-list.ts'
import { refusedId, reportQuarantine } from './quarantine.ts'
import { pageLocation, parseResponse } from './response.ts'
import { REPORT_FIELDS, type Report, reportSchema, UnknownFields, unknownNames } from './schema.ts'

/** Decodes pages of reports. Reports are few, so this takes the plainest way. */
export function reportDecoder(
  plan: DecodePlan,
): (body: Buffer, context: PageContext, room?: BatchAllocator) => DecodedPage {
  const quarantine = reportQuarantine()
  const ids = new ChainIds()

  return (body, context, room) => {
    const { query } = context
    const { next, exactItems } = parseResponse(body, context)
    const items = exactItems()
    const reports: Report[] = []
    const quarantined: RefusedItem[] = []
    const unknown = new UnknownFields()
    ids.begin(context.recent)
    for (const [index, item] of items.entries()) {
      const result = reportSchema.safeParse(item)
      const id = result.success ? result.data.id : refusedId(item)
      if (query.type === 'report' && id !== null && id !== query.id) throw wrongReport(context)
      const isNew = id === null || (result.success ? ids.isNewRow(id) : ids.isNewRefusal(id))
      if (!isNew) continue
      if (result.success) {
        reports.push(result.data)
        unknown.countAll(unknownNames(item as object, REPORT_FIELDS))
      } else {
        quarantined.push(quarantine(item, result.error.issues, index))
      }
    }
    const columns = plan.columns.map((spec) => reportColumn(spec, reports))
    return {
      next,
      recordBatch:
        reports.length === 0 ? null : encodeRecordBatch({ rows: reports.length, groups: [], columns }, room),
      rows: reports.length,
      items: items.length,
      repeated: ids.repeated,
      ids: ids.page(),
      times: null,
      span: null,
      quarantined,
      unknownFields: unknown.record(),
    }
  }
}

/** Another report came than the one asked for. */
function wrongReport(context: PageContext): ExportError {
  return new ExportError(
    'data',
    'The answer holds another report than the one that was asked for',
    pageLocation(context),
    'Check service.report_path, and what stands between here and the service: a cache may mix up answers.',
  )
}

function isInt64(value: unknown): value is Int64 {
  return typeof value === 'number' || typeof value === 'bigint'
}

function reportColumn({ name, type }: ColumnSpec, reports: readonly Report[]): Column {
  const values = reports.map((report) => report[name as keyof Report] ?? null)
  return { name, group: null, values: reportVector(type, values) }
}

function reportVector(type: ColumnSpec['type'], values: readonly Report[keyof Report][]): Vector {
  switch (type) {
    case 'text': {
      const list = new TextList()
      for (const value of values) {
        if (typeof value === 'string') list.addText(value)
        else list.addNull()
      }
      return list.vector()
    }
    case 'list': {
      const list = new ListList()
      for (const value of values) list.add(Array.isArray(value) ? value : null)
      return list.vector()
    }
    case 'boolean': {
      const list = new BooleanList()
      for (const value of values) list.add(typeof value === 'boolean' ? value : null)
      return list.vector()
    }
    case 'int64':
    case 'timestamp': {
      const list = new NumberList()
      // JSON knows a negative zero; a column of integers does not.
      for (const value of values) list.add(isInt64(value) ? (value === 0 ? 0 : value) : null)
      return list.vector()
    }
  }
}
