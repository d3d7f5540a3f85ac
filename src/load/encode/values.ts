import { type ColumnSpec, type Int64, int64, type RecordBatch, type TextVector } from '../../core/index.ts'
import { integerColumn, type RecordBatchColumn, recordBatchColumn } from './record-batch-column.ts'

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

function textAt({ bytes, offsets }: TextVector, index: number): string {
  const start = offsets[index]!
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, offsets[index + 1]! - start).toString()
}
