import { type Options, stringify } from 'csv-stringify/sync'
import { type CsvFormat, formatTimestamp } from '../../../core/index.ts'
import type { ColumnSpec, RowValue } from '../../../rows/index.ts'
import type { EncodeSettings, ShardEncoder } from '../encoder.ts'
import { rowObjects } from '../record-batch-column.ts'
import { csvShard } from './csv-shard.ts'

// The empty string in quotes differs from null. Many readers would end a line at a carriage return without quotes.
const OPTIONS: Options = { quoted_match: /^$/, quote_record_delimiter: true }

/** CSV by csv-stringify: the reference for the faster engine. */
export function csvStringify(settings: EncodeSettings, format: CsvFormat): ShardEncoder {
  return csvShard(settings, format, (recordBatches) => {
    const lines = recordBatches.map((recordBatch) => {
      const rows = Array.from(rowObjects(recordBatch, settings.columns), (row) =>
        settings.columns.map((column) => fieldText(row[column.name] ?? null, column, format.escapeFormulas)),
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
  // In JSON, a NUL would be an escape. PostgreSQL's JSON columns reject it too.
  if (typeof value !== 'string') return JSON.stringify(value.map((item) => item?.replaceAll('\0', '\ufffd')))
  // The escape_formulas option of csv-stringify also changes strings that no spreadsheet evaluates.
  const text = value.replaceAll('\0', '\ufffd')
  return escapeFormulas && /^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text
}
