import {
  type Aggregates,
  AggregateTally,
  type Column,
  type IntegerVector,
  nameInAggregates,
  type RecordBatch,
  ROW_GROUP_LIMITS,
} from '../core/index.ts'
import { decodeRecordBatches } from './encode/decode-record-batches.ts'
import type { EncodedRowGroup, ShardEncoder } from './encode/encoder.ts'
import { textAt } from './encode/record-batch-column.ts'

/**
 * Encodes rows as one row group, and computes aggregates over the rows.
 * @param encoded record batches, see `encodeRecordBatch`
 */
export async function encodeWithAggregates(
  encoder: ShardEncoder,
  encoded: readonly Uint8Array[],
): Promise<EncodedRowGroupWithAggregates> {
  const recordBatches = decodeRecordBatches(encoded)
  const rowGroup = await encoder.encode(recordBatches)
  return { ...rowGroup, aggregates: aggregateRows(recordBatches) }
}

export type EncodedRowGroupWithAggregates = EncodedRowGroup & {
  readonly aggregates: Aggregates
}

/**
 * Aggregates over the rows of record batches. A column with a table of distinct values is read by its table instead of
 * its rows, so that no string is read twice for one page.
 */
export function aggregateRows(recordBatches: readonly RecordBatch[]): Aggregates {
  const tally = new AggregateTally(ROW_GROUP_LIMITS)
  for (const recordBatch of recordBatches) aggregateRecordBatch(recordBatch, tally)
  return tally.aggregates()
}

function aggregateRecordBatch(recordBatch: RecordBatch, tally: AggregateTally): void {
  tally.rows += recordBatch.rows
  const weights = recordBatch.groups.map(({ size, indices }) =>
    rowsOfEntries(size, indices, recordBatch.rows),
  )
  for (const column of recordBatch.columns) {
    const weight = column.group === null ? null : weights[column.group]!
    tally.addNulls(column.name, nullsOf(column.values.valid, weight))
    if (column.name === 'imported_at') addDays(column, weight, tally)
    else if (column.name === 'source_name') addNames(column, weight, recordBatch.rows, tally.sources)
    else if (column.name === 'hash_type') addNames(column, weight, recordBatch.rows, tally.hashTypes)
  }
}

/** How many rows point to each entry of a table. */
function rowsOfEntries(size: number, indices: Uint32Array | null, rows: number): Uint32Array {
  const weights = new Uint32Array(size)
  if (indices === null) weights[0] = rows
  else for (let row = 0; row < rows; row++) weights[indices[row]!]!++
  return weights
}

/** @param weight rows that each value stands for; null: one */
function nullsOf(valid: Uint8Array | null, weight: Uint32Array | null): number {
  if (valid === null) return 0
  let nulls = 0
  if (weight === null) for (let i = 0; i < valid.length; i++) nulls += 1 - valid[i]!
  else for (let i = 0; i < weight.length; i++) if (valid[i] === 0) nulls += weight[i]!
  return nulls
}

const DAY_MICROS = 86_400_000_000

/** Rows are usually in time order, so most rows have the same day as the row before. */
function addDays({ values }: Column, weight: Uint32Array | null, tally: AggregateTally): void {
  if (values.kind !== 'number' && values.kind !== 'int64') return
  const { valid } = values
  const times = asDoubles(values)
  let start = Number.NaN
  let rows = 0
  const flush = (): void => {
    if (rows > 0) tally.days.add(start / DAY_MICROS, rows)
    rows = 0
  }
  for (let i = 0; i < times.length; i++) {
    if (valid !== null && valid[i] === 0) continue
    const at = times[i]!
    if (!(at >= start && at < start + DAY_MICROS)) {
      flush()
      // A quotient would be rounded: just before midnight, up to the next day.
      start = at - (((at % DAY_MICROS) + DAY_MICROS) % DAY_MICROS)
    }
    rows += weight === null ? 1 : weight[i]!
  }
  flush()
}

/** The nearest double gives the right day, except at midnights thousands of years away. */
function asDoubles({ kind, values }: IntegerVector): Float64Array {
  return kind === 'number' ? values : Float64Array.from(values, Number)
}

function addNames(
  { values }: Column,
  weight: Uint32Array | null,
  rows: number,
  names: AggregateTally['sources'],
): void {
  if (values.kind !== 'text') return
  const { valid } = values
  for (let i = 0; i < (weight?.length ?? rows); i++) {
    const count = weight === null ? 1 : weight[i]!
    if (count > 0) names.add(valid?.[i] === 0 ? null : nameInAggregates(textAt(values, i)), count)
  }
}
