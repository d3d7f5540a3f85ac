import {
  type BatchAllocator,
  type Column,
  type ColumnSpec,
  type DecodedPage,
  type DecodePlan,
  encodeRecordBatch,
  type Int64,
  type PageContext,
  type RefusedItem,
} from '../core/index.ts'
import { ChainIds } from './chain-ids.ts'
import { BooleanList, ListList, NumberList, TextList } from './columns/index.ts'
import { parseResponse } from './response.ts'
import {
  fieldName,
  REPORT_FIELDS,
  type Report,
  reportSchema,
  UnknownFields,
  unknownNames,
} from './schema/index.ts'
import { pagePlace, refusedId, reportQuarantine, wrongReport } from './set-aside/index.ts'

/** Decodes pages of reports. Reports are few, so this takes the plainest way. */
export function reportDecoder(
  plan: DecodePlan,
): (body: Buffer, context: PageContext, room?: BatchAllocator) => DecodedPage {
  const quarantine = reportQuarantine()
  const ids = new ChainIds()

  return (body, context, room) => {
    const { query } = context
    const { next, exactItems } = parseResponse(body, query, pagePlace(context))
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
        for (const name of unknownNames(item as object, REPORT_FIELDS)) unknown.count(fieldName('', name))
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

function isInt64(value: unknown): value is Int64 {
  return typeof value === 'number' || typeof value === 'bigint'
}

function reportColumn({ name, type }: ColumnSpec, reports: readonly Report[]): Column {
  const field = name as keyof Report
  const values = reports.map((report) => report[field] ?? null)
  switch (type) {
    case 'text': {
      const list = new TextList()
      for (const value of values) {
        if (typeof value === 'string') list.addText(value)
        else list.addNull()
      }
      return { name, group: null, values: list.vector() }
    }
    case 'list': {
      const list = new ListList()
      for (const value of values) list.add(Array.isArray(value) ? value : null)
      return { name, group: null, values: list.vector() }
    }
    case 'boolean': {
      const list = new BooleanList()
      for (const value of values) list.add(typeof value === 'boolean' ? value : null)
      return { name, group: null, values: list.vector() }
    }
    case 'int64':
    case 'timestamp': {
      const list = new NumberList()
      // JSON knows a negative zero; a column of integers does not.
      for (const value of values) list.add(isInt64(value) ? (value === 0 ? 0 : value) : null)
      return { name, group: null, values: list.vector() }
    }
  }
}
