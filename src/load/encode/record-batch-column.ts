import {
  type ColumnSpec,
  ExportError,
  type Group,
  type Int64,
  type IntegerVector,
  int64,
  type RecordBatch,
  type TextVector,
  type Vector,
} from '../../core/index.ts'

/** One column of one record batch, with the record batch's index of its group at hand. */
export type RecordBatchColumn<Values extends Vector = Vector> = {
  readonly rows: number
  /** null: one value per row. */
  readonly group: Group | null
  readonly values: Values
}

export type VectorOf<Kind extends Vector['kind']> = Extract<Vector, { kind: Kind }>

export function totalRows(batches: readonly { readonly rows: number }[]): number {
  return batches.reduce((sum, { rows }) => sum + rows, 0)
}

/** Calls `visit` with the index into the column's values for every row, in order. */
export function eachEntry(column: RecordBatchColumn, visit: (entry: number) => void): void {
  const { rows, group } = column
  if (group === null) for (let row = 0; row < rows; row++) visit(row)
  else if (group.indices === null) for (let row = 0; row < rows; row++) visit(0)
  else for (let row = 0; row < rows; row++) visit(group.indices[row]!)
}

/** The column of that name in every record batch. @throws ExportError `damaged` as {@link recordBatchColumn} */
export function recordBatchColumns<Kind extends Vector['kind']>(
  recordBatches: readonly RecordBatch[],
  name: string,
  kind: Kind,
): RecordBatchColumn<VectorOf<Kind>>[] {
  return recordBatches.map((recordBatch) => recordBatchColumn(recordBatch, name, kind))
}

/**
 * A column of integers: in doubles, but for pages that have some which no double holds.
 * @throws ExportError `damaged` as {@link recordBatchColumn}
 */
export function integerColumn(recordBatch: RecordBatch, name: string): RecordBatchColumn<IntegerVector> {
  const isLarge = recordBatch.columns.some((column) => column.name === name && column.values.kind === 'int64')
  return isLarge
    ? recordBatchColumn(recordBatch, name, 'int64')
    : recordBatchColumn(recordBatch, name, 'number')
}

/** @throws ExportError `damaged` when the record batch has no such column, or holds another kind of values in it */
export function recordBatchColumn<Kind extends Vector['kind']>(
  recordBatch: RecordBatch,
  name: string,
  kind: Kind,
): RecordBatchColumn<VectorOf<Kind>> {
  const column = recordBatch.columns.find((candidate) => candidate.name === name)
  if (column !== undefined && isKind(column.values, kind)) {
    const group = column.group === null ? null : recordBatch.groups[column.group]!
    return { rows: recordBatch.rows, group, values: column.values }
  }
  throw new ExportError(
    'damaged',
    `Rows have no ${kind} column ${name}`,
    '',
    'They were decoded by another version or plan; start again with --fresh.',
  )
}

function isKind<Kind extends Vector['kind']>(vector: Vector, kind: Kind): vector is VectorOf<Kind> {
  return vector.kind === kind
}

/** One value as an engine gets it that knows of nothing but values. */
export type Value = null | Int64 | boolean | string | readonly (string | null)[]

/** Reads the values of one column of a record batch row by row: for the engines that take rows. */
export function valueReader(recordBatch: RecordBatch, { name, type }: ColumnSpec): (row: number) => Value {
  switch (type) {
    case 'int64':
    case 'timestamp': {
      const column = integerColumn(recordBatch, name)
      return reader(column, (index) => int64(column.values.values[index]!))
    }
    case 'boolean': {
      const column = recordBatchColumn(recordBatch, name, 'boolean')
      return reader(column, (index) => column.values.values[index] === 1)
    }
    case 'text': {
      const column = recordBatchColumn(recordBatch, name, 'text')
      return reader(column, (index) => textAt(column.values, index))
    }
    case 'list': {
      const column = recordBatchColumn(recordBatch, name, 'list')
      const { items, offsets } = column.values
      return reader(column, (index) => {
        const list: (string | null)[] = []
        for (let item = offsets[index]!; item < offsets[index + 1]!; item++) {
          list.push(items.valid === null || items.valid[item] === 1 ? textAt(items, item) : null)
        }
        return list
      })
    }
  }
}

function reader(
  { group, values: { valid } }: RecordBatchColumn,
  read: (index: number) => Value,
): (row: number) => Value {
  return (row) => {
    const index = group === null ? row : group.indices === null ? 0 : group.indices[row]!
    return valid === null || valid[index] === 1 ? read(index) : null
  }
}

/** The string of an entry. */
export function textAt({ bytes, offsets }: TextVector, index: number): string {
  const start = offsets[index]!
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, offsets[index + 1]! - start).toString()
}
