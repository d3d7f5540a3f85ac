import { type AggregateTally, type ColumnSpec, type Format, nameInAggregates } from '../../core/index.ts'
import { type CsvFormat, fieldText, readCsv, unescaped } from './csv-reader.ts'
import { openParquet } from './parquet-reader.ts'
import type { ShardReader } from './shard-reader.ts'

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

/** @param value a string; of `imported_at` microseconds since 1970 */
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
  const { rowGroups } = await openParquet(reader)
  for (const rowGroup of rowGroups) {
    for (const { name, nullable } of columns) {
      tally.addNulls(name, 0)
      if (!nullable && name !== 'imported_at') continue
      for (const values of await rowGroup.column(name)) {
        for (const value of values) addValue(name, value, tally)
      }
    }
    tally.rows += rowGroup.rows
  }
}

/** Columns of which more is counted than their nulls. */
const COUNTED: ReadonlySet<string> = new Set(['source_name', 'hash_type', 'imported_at'])

function csvAggregates(reader: ShardReader, format: CsvFormat, tally: AggregateTally): Promise<void> {
  return readCsv(reader, format, (names) => {
    for (const name of names) tally.addNulls(name, 0)
    return (line) => {
      for (const [i, name] of names.entries()) {
        if (!COUNTED.has(name)) {
          if (line.starts[i] === line.ends[i]) tally.addNulls(name, 1)
          continue
        }
        const text = fieldText(line, i)
        const value = text === null || !format.escapeFormulas ? text : unescaped(text)
        // Its milliseconds are enough to tell the day.
        addValue(name, name === 'imported_at' && value !== null ? Date.parse(value) * 1000 : value, tally)
      }
      tally.rows++
    }
  })
}
