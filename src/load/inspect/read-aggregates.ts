import {
  type AggregateTally,
  type BatchColumn,
  type ColumnSpec,
  type Format,
  nameInAggregates,
  type RowBatch,
} from '../../core/index.ts'
import { readBatches } from './read-batches.ts'
import type { ShardReader } from './shard-reader.ts'

const DAY_MICROS = 86_400_000_000
const BATCH_ROWS = 10_000

/**
 * Adds the aggregates over the rows of a shard to `tally`.
 * @throws ExportError `damaged` when the bytes are not valid in the format
 */
export async function readAggregates(
  reader: ShardReader,
  format: Format,
  columns: readonly ColumnSpec[],
  tally: AggregateTally,
): Promise<void> {
  for (const { name } of columns) tally.addNulls(name, 0)
  const read = columns.filter(({ name, nullable }) => nullable || name === 'imported_at')
  for await (const batch of readBatches(reader, format, read, BATCH_ROWS)) aggregateBatch(batch, tally)
}

/** Adds the aggregates of some rows. */
export function aggregateBatch(batch: RowBatch, tally: AggregateTally): void {
  for (const column of batch.columns) addColumn(column, batch.rows, tally)
  tally.rows += batch.rows
}

function addColumn(column: BatchColumn, rows: number, tally: AggregateTally): void {
  const { name, values } = column
  const valid = 'valid' in column ? column.valid : null
  for (let row = 0; row < rows; row++) {
    const value = valid?.[row] === 0 ? null : (values[row] ?? null)
    if (value === null) tally.addNulls(name, 1)
    else if (name === 'imported_at') tally.days.add(Math.floor(Number(value) / DAY_MICROS), 1)
    const counted = name === 'source_name' ? tally.sources : name === 'hash_type' ? tally.hashTypes : null
    counted?.add(value === null ? null : nameInAggregates(String(value)), 1)
  }
}
