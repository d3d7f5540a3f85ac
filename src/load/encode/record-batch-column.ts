import { ExportError } from '../../core/index.ts'
import {
  type ColumnSpec,
  type Group,
  type IntegerVector,
  type RecordBatch,
  type RowValue,
  rowBatchOf,
  rowsOf,
  type TextVector,
  type Vector,
} from '../../rows/index.ts'

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

/** Calls `visit` for every row, in order, with the index into the column's values. */
export function eachEntry(
  { rows, group }: Pick<RecordBatchColumn, 'rows' | 'group'>,
  visit: (entry: number) => void,
): void {
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

/** Doubles, or 64-bit integers if a double cannot hold one. @throws ExportError as {@link recordBatchColumn} */
export function integerColumn(recordBatch: RecordBatch, name: string): RecordBatchColumn<IntegerVector> {
  const isLarge = recordBatch.columns.some((column) => column.name === name && column.values.kind === 'int64')
  return recordBatchColumn(recordBatch, name, isLarge ? 'int64' : 'number')
}

/** @throws ExportError `damaged` when the record batch has no such column, or it holds values of another kind */
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
  throw missingColumn(kind, name)
}

function missingColumn(kind: string, name: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `Rows have no ${kind} column ${name}`,
    where: '',
    next: 'They were decoded by another version or with other settings; start again with --fresh.',
  })
}

function isKind<Kind extends Vector['kind']>(vector: Vector, kind: Kind): vector is VectorOf<Kind> {
  return vector.kind === kind
}

/** For the engines that need rows. @throws ExportError `damaged` when the record batch lacks a column */
export function rowObjects(
  recordBatch: RecordBatch,
  columns: readonly ColumnSpec[],
): Iterable<Record<string, RowValue>> {
  for (const { name, type } of columns) {
    if (recordBatch.columns.every((column) => column.name !== name)) throw missingColumn(type, name)
  }
  return rowsOf(rowBatchOf(recordBatch, columns))
}

export function textAt({ bytes, offsets }: TextVector, index: number): string {
  const start = offsets[index]!
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, offsets[index + 1]! - start).toString()
}
