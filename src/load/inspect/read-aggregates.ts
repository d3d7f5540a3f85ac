import { parquetMetadataAsync } from 'hyparquet'
import { type AggregateTally, type ColumnSpec, type Format, nameInAggregates } from '../../core/index.ts'
import { fieldText, readCsv } from './csv-records.ts'
import { damaged, guarded } from './damaged.ts'
import { bytesOf, MAX_FIELDS, unescaped } from './inspect-csv.ts'
import { fileOf, readColumn } from './inspect-parquet.ts'
import type { ShardReader } from './inspector.ts'

/**
 * Reads what the rows of a shard come to, and adds it.
 * @throws ExportError `damaged` when the bytes are not what the format says
 */
export function readAggregates(
  reader: ShardReader,
  format: Format,
  columns: readonly ColumnSpec[],
  tally: AggregateTally,
): Promise<void> {
  switch (format.kind) {
    case 'parquet':
      return parquetAggregates(reader, columns, tally)
    case 'csv':
      return csvAggregates(reader, format, tally)
  }
}

const DAY_MS = 86_400_000

/** @param value a text; of `imported_at` microseconds since 1970 */
function addValue(column: string, value: unknown, tally: AggregateTally): void {
  if (value === null || value === undefined) tally.addNulls(column, 1)
  if (column === 'source_name') tally.sources.add(nameOf(value), 1)
  else if (column === 'hash_type') tally.hashTypes.add(nameOf(value), 1)
  else if (column === 'imported_at' && value !== null) {
    tally.days.add(Math.floor(Number(value) / (1000 * DAY_MS)), 1)
  }
}

function nameOf(value: unknown): string | null {
  return value === null || value === undefined ? null : nameInAggregates(String(value))
}

async function parquetAggregates(
  reader: ShardReader,
  columns: readonly ColumnSpec[],
  tally: AggregateTally,
): Promise<void> {
  const metadata = await guarded('It is no whole Parquet file', () =>
    parquetMetadataAsync(fileOf(reader), { geoparquet: false }),
  )
  let start = 0
  for (const { num_rows } of metadata.row_groups) {
    const end = start + Number(num_rows)
    for (const { name, nullable } of columns) {
      tally.addNulls(name, 0)
      if (!nullable && name !== 'imported_at') continue
      const read = () => readColumn(reader, metadata, name, start, end)
      for (const chunk of await guarded(`Column ${name} cannot be read`, read)) {
        for (const value of chunk) addValue(name, value, tally)
      }
    }
    start = end
  }
  tally.rows += start
}

async function csvAggregates(
  reader: ShardReader,
  format: Extract<Format, { kind: 'csv' }>,
  tally: AggregateTally,
): Promise<void> {
  let names: readonly string[] | null = null
  await readCsv(bytesOf(reader, format), MAX_FIELDS, (line) => {
    if (names === null) {
      names = Array.from({ length: line.count }, (_, i) => fieldText(line, i) ?? '')
      for (const name of names) tally.addNulls(name, 0)
      return
    }
    if (line.count !== names.length) throw damaged('A line has too few or too many fields')
    for (const [i, name] of names.entries()) {
      if (!READ.has(name)) {
        if (line.starts[i] === line.ends[i]) tally.addNulls(name, 1)
        continue
      }
      const text = fieldText(line, i)
      const value = text === null || !format.escapeFormulas ? text : unescaped(text)
      // Its milliseconds are enough to tell the day.
      addValue(name, name === 'imported_at' && value !== null ? Date.parse(value) * 1000 : value, tally)
    }
    tally.rows++
  })
}

const READ: ReadonlySet<string> = new Set(['source_name', 'hash_type', 'imported_at'])
