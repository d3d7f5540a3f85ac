import type * as z from 'zod'
import type { ExportError, Int64 } from '../core/index.ts'
import { type DecodeSettings, encodeRecordBatch, type PageContext, type RejectedItem } from '../rows/index.ts'
import { ChainIds } from './chain-ids.ts'
import { NumberList } from './columns/lists.ts'
import { type ColumnValue, valueColumn } from './columns/value-columns.ts'
import { ignoredFilter, PageRange } from './page-range.ts'
import { plainQuarantine, rejectedId } from './quarantine.ts'
import { type Decode, parseResponse } from './response.ts'
import { UnknownFields, unknownNames } from './schema.ts'

/** Items whose fields become columns of the same names: `imported_at`, where they have it, decides on windows. */
type PlainItem = { readonly id: Int64; readonly imported_at?: Int64 } & Readonly<
  Record<string, ColumnValue | undefined>
>

/** For items that hold no secret and no identity. @param refuse returns an error for an id that was not requested */
export function plainDecoder(
  settings: DecodeSettings,
  schema: z.ZodObject & z.ZodType<PlainItem>,
  refuse: (id: Int64, context: PageContext) => ExportError | null = () => null,
): Decode {
  const columns = settings.columns.map(({ name, type }) => ({ name, values: valueColumn(type, false) }))
  const fields = new Set(Object.keys(schema.shape))
  const quarantine = plainQuarantine(fields)
  const ids = new ChainIds()
  const times = new NumberList()
  const hasTimes = fields.has('imported_at')

  return (body, context) => {
    const { next, items } = parseResponse(body, context)
    let rows = 0
    const quarantined: RejectedItem[] = []
    const unknown = new UnknownFields()
    ids.begin(context)
    times.reset()
    for (const { values } of columns) values.reset()
    const range = new PageRange(settings.order, context, ids)
    for (const [index, item] of items.entries()) {
      const { data, error } = schema.safeParse(item)
      const id = data?.id ?? rejectedId(item)
      const refusal = id === null ? null : refuse(id, context)
      if (refusal !== null) throw refusal
      if (data === undefined) {
        if (id === null || ids.isNewRejection(id)) quarantined.push(quarantine(item, error.issues, index))
        continue
      }
      const { imported_at: at } = data
      const verdict =
        at !== undefined
          ? range.admit(data.id, at)
          : !ids.isKnownRow(data.id) && ids.isNewRow(data.id)
            ? 'keep'
            : 'repeated'
      if (verdict === 'outside') throw ignoredFilter(index, context)
      if (verdict !== 'keep') continue
      rows++
      if (at !== undefined) times.add(at)
      for (const { name, values } of columns) values.add(data[name] ?? null)
      unknown.countAll(unknownNames(item as object, fields))
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
      met: ids.met,
      ids: ids.page(),
      times: hasTimes ? times.copy() : null,
      span: range.span,
      quarantined,
      unknownFields: unknown.record(),
    }
  }
}
