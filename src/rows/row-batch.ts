import { type Int64, int64 } from '../core/index.ts'
import type { Column, RecordBatch, Vector } from './record-batch.ts'
import type { ColumnSpec, ColumnType } from './schema.ts'

/** Masked rows in columns: value i of each column belongs to row i. The receiver may keep it. */
export type RowBatch = {
  readonly rows: number
  /** In the column order of the files. */
  readonly columns: readonly BatchColumn[]
}

export type BatchColumn = { readonly name: string } & (
  | IntegerColumn
  | TextColumn
  | BooleanColumn
  | ListColumn
)

/** Integers. Timestamps are microseconds since 1970, UTC. */
export type IntegerColumn = {
  readonly type: 'int64' | 'timestamp'
  /** 64-bit integers if a double is not exact for one of them. */
  readonly values: Float64Array | BigInt64Array
  /** 1 for a value, 0 for null; null: the column has no null. */
  readonly valid: Uint8Array | null
}
export type TextColumn = { readonly type: 'text'; readonly values: readonly (string | null)[] }
export type BooleanColumn = { readonly type: 'boolean'; readonly values: readonly (boolean | null)[] }
export type ListColumn = {
  readonly type: 'list'
  readonly values: readonly (readonly (string | null)[] | null)[]
}

/** One value of a row: a string, list, boolean or integer. An integer is a bigint if a double is not exact. */
export type RowValue = string | boolean | Int64 | readonly (string | null)[] | null

/** Iterates over the rows of a batch as objects. This is convenient, and much slower than the columns. */
export function* rowsOf({ rows, columns }: RowBatch): Generator<Record<string, RowValue>> {
  for (let row = 0; row < rows; row++)
    yield Object.fromEntries(columns.map((column) => [column.name, valueAt(column, row)]))
}

export function valueAt(column: BatchColumn, row: number): RowValue {
  if (!('valid' in column)) return column.values[row] ?? null
  return column.valid?.[row] === 0 ? null : int64(column.values[row]!)
}

/** Copies the rows of a record batch, so that the memory of the record batch can be reused. */
export function rowBatchOf(recordBatch: RecordBatch, specs: readonly ColumnSpec[]): RowBatch {
  const columns = specs.flatMap(({ name, type }) => {
    const column = recordBatch.columns.find((candidate) => candidate.name === name)
    return column === undefined ? [] : [batchColumn(name, type, valuesOf(column, recordBatch))]
  })
  return { rows: recordBatch.rows, columns }
}

export function batchColumn(name: string, type: ColumnType, values: readonly RowValue[]): BatchColumn {
  switch (type) {
    case 'int64':
    case 'timestamp':
      return { name, type, ...integers(values as readonly (Int64 | null)[]) }
    case 'text':
      return { name, type, values: values as readonly (string | null)[] }
    case 'boolean':
      return { name, type, values: values as readonly (boolean | null)[] }
    case 'list':
      return { name, type, values: values as readonly (readonly (string | null)[] | null)[] }
  }
}

function integers(values: readonly (Int64 | null)[]) {
  const valid = values.includes(null) ? Uint8Array.from(values, (value) => (value === null ? 0 : 1)) : null
  if (values.some((value) => typeof value === 'bigint')) {
    return { values: BigInt64Array.from(values, (value) => BigInt(value ?? 0)), valid }
  }
  return { values: Float64Array.from(values as readonly (number | null)[], (value) => value ?? 0), valid }
}

function valuesOf({ group, values }: Column, recordBatch: RecordBatch): readonly RowValue[] {
  const entries = entriesOf(values)
  if (group === null) return entries
  const { indices } = recordBatch.groups[group]!
  return Array.from(
    { length: recordBatch.rows },
    (_, row) => entries[indices === null ? 0 : indices[row]!] ?? null,
  )
}

function entriesOf(vector: Vector): readonly RowValue[] {
  const isThere = (i: number): boolean => vector.valid === null || vector.valid[i] === 1
  switch (vector.kind) {
    case 'number':
      return Array.from(vector.values, (value, i) => (isThere(i) ? value : null))
    case 'int64':
      return Array.from(vector.values, (value, i) => (isThere(i) ? int64(value) : null))
    case 'boolean':
      return Array.from(vector.values, (value, i) => (isThere(i) ? value === 1 : null))
    case 'text': {
      const bytes = Buffer.from(vector.bytes.buffer, vector.bytes.byteOffset, vector.bytes.byteLength)
      const { offsets } = vector
      return Array.from({ length: offsets.length - 1 }, (_, i) =>
        isThere(i) ? bytes.toString('utf8', offsets[i]!, offsets[i + 1]!) : null,
      )
    }
    case 'list': {
      const items = entriesOf(vector.items) as readonly (string | null)[]
      const { offsets } = vector
      return Array.from({ length: offsets.length - 1 }, (_, i) =>
        isThere(i) ? items.slice(offsets[i]!, offsets[i + 1]!) : null,
      )
    }
  }
}
