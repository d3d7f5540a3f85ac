import { type RecordBatch, type RowValue, rowBatchOf, rowsOf } from '../../src/rows/index.ts'

export type Cell = RowValue

/** The cells of each row, whatever shape the columns have. */
export function cellsOf(recordBatch: RecordBatch): Cell[][] {
  const specs = recordBatch.columns.map(({ name, values: { kind } }) => {
    return { name, type: kind === 'number' ? 'int64' : kind, nullable: true, meaning: '' } as const
  })
  return Array.from(rowsOf(rowBatchOf(recordBatch, specs)), (row) => Object.values(row))
}
