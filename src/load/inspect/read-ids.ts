import { parquetMetadataAsync } from 'hyparquet'
import type { Format } from '../../core/index.ts'
import { fieldText, readCsv } from './csv-records.ts'
import { damaged, guarded } from './damaged.ts'
import { bytesOf, MAX_FIELDS } from './inspect-csv.ts'
import { fileOf, readColumn } from './inspect-parquet.ts'
import type { ShardReader } from './inspector.ts'

/** Gets the id of every row, and the kind and value of the query that found it, where those were asked for. */
export type OnId = (id: number | bigint, queryType: string, queryValue: string) => void

/**
 * Reads the ids of a shard, and nothing that need not be read for it.
 * @param withQuery whether to read the columns `query_type` and `query_value` too; else both are empty
 * @throws ExportError `damaged` when the bytes are not what the format says, or such a column is not there
 */
export function readIds(reader: ShardReader, format: Format, withQuery: boolean, onId: OnId): Promise<void> {
  switch (format.kind) {
    case 'parquet':
      return parquetIds(reader, withQuery, onId)
    case 'csv':
      return csvIds(reader, format, withQuery, onId)
  }
}

async function parquetIds(reader: ShardReader, withQuery: boolean, onId: OnId): Promise<void> {
  const metadata = await guarded('It is no whole Parquet file', () =>
    parquetMetadataAsync(fileOf(reader), { geoparquet: false }),
  )
  let start = 0
  for (const { num_rows } of metadata.row_groups) {
    const end = start + Number(num_rows)
    const values = async (name: string): Promise<unknown[]> => {
      const read = () => readColumn(reader, metadata, name, start, end)
      return (await guarded(`Column ${name} cannot be read`, read)).flatMap((chunk) => [...chunk])
    }
    const ids = await values('id')
    const types = withQuery ? await values('query_type') : []
    const queries = withQuery ? await values('query_value') : []
    for (const [row, id] of ids.entries()) {
      if (typeof id !== 'number' && typeof id !== 'bigint') throw damaged('Column id holds no integers')
      onId(id, withQuery ? String(types[row]) : '', withQuery ? String(queries[row]) : '')
    }
    start = end
  }
}

async function csvIds(
  reader: ShardReader,
  format: Extract<Format, { kind: 'csv' }>,
  withQuery: boolean,
  onId: OnId,
): Promise<void> {
  let indexes: { readonly id: number; readonly type: number; readonly value: number } | null = null
  await readCsv(bytesOf(reader, format), MAX_FIELDS, (line) => {
    const text = (i: number): string => fieldText(line, i) ?? ''
    if (indexes === null) {
      const names = Array.from({ length: line.count }, (_, i) => text(i))
      indexes = {
        id: names.indexOf('id'),
        type: names.indexOf('query_type'),
        value: names.indexOf('query_value'),
      }
      if (Math.min(indexes.id, withQuery ? Math.min(indexes.type, indexes.value) : 0) < 0) {
        throw damaged('A column is missing')
      }
      return
    }
    // With escape_formulas a quote may stand before a minus.
    const digits = text(indexes.id).replace(/^'/, '')
    const id = digits.length > MAX_EXACT_DIGITS ? BigInt(digits) : Number(digits)
    onId(id, withQuery ? text(indexes.type) : '', withQuery ? text(indexes.value) : '')
  })
}

/** Integers of so many digits are exact in a double. */
const MAX_EXACT_DIGITS = 15
