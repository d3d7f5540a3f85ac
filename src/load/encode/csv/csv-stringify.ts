import { type Options, stringify } from 'csv-stringify/sync'
import { type ColumnSpec, type Format, formatTimestamp, type RowValue } from '../../../core/index.ts'
import type { EncodePlan, ShardEncoder } from '../encoder.ts'
import { rowObjects } from '../record-batch-column.ts'
import { csvShard } from './csv-shard.ts'

// Only the empty text matches, so that it differs from null, which is nothing at all. A lone carriage
// return would end a line for many readers, so it needs quotes even though lines end in `\n` here.
const OPTIONS: Options = { quoted_match: /^$/, quote_record_delimiter: true }

/** CSV by csv-stringify: the reference that the faster engine is held to. */
export function csvStringify(plan: EncodePlan, format: Extract<Format, { kind: 'csv' }>): ShardEncoder {
  return csvShard(plan, format, (recordBatches) => {
    const lines = recordBatches.map((recordBatch) => {
      const rows = Array.from(rowObjects(recordBatch, plan.columns), (row) =>
        plan.columns.map((column) => fieldText(row[column.name] ?? null, column, format.escapeFormulas)),
      )
      return Buffer.from(stringify(rows, OPTIONS))
    })
    return new Uint8Array(Buffer.concat(lines))
  })
}

function fieldText(value: RowValue, { type }: ColumnSpec, escapeFormulas: boolean): string | null {
  if (value === null) return null
  if (typeof value === 'number' || typeof value === 'bigint')
    return type === 'timestamp' ? formatTimestamp(value) : String(value)
  if (typeof value === 'boolean') return String(value)
  // In JSON a NUL is an escape, which is no better: a column of JSON in PostgreSQL takes none.
  if (typeof value !== 'string') return JSON.stringify(value.map((item) => item?.replaceAll('\0', '\ufffd')))
  // csv-stringify's own guard also changes characters that no spreadsheet runs.
  const text = value.replaceAll('\0', '\ufffd')
  return escapeFormulas && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
}
