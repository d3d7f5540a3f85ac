import type { ColumnSpec, RecordBatch, TextVector } from '../../../core/index.ts'
import { type RecordBatchColumn, recordBatchColumn } from '../record-batch-column.ts'

/** U+FFFD, which stands where a NUL was: PostgreSQL and pyarrow refuse a CSV file that has one. */
export const REPLACED_NUL = Buffer.from('\ufffd')

/**
 * NULs in the texts and lists of some rows. They are looked for here rather than where texts are written, since hardly
 * any page has one, and to search for a byte costs next to nothing.
 */
export function countNuls(recordBatches: readonly RecordBatch[], columns: readonly ColumnSpec[]): number {
  let nuls = 0
  for (const recordBatch of recordBatches) {
    for (const { name, type } of columns) {
      if (type === 'text') {
        const column = recordBatchColumn(recordBatch, name, 'text')
        nuls += nulsIn(column, column.values, (entry) => entry)
      } else if (type === 'list') {
        const column = recordBatchColumn(recordBatch, name, 'list')
        const { offsets, items } = column.values
        nuls += nulsIn(column, items, (entry) => offsets[entry]!)
      }
    }
  }
  return nuls
}

/** @param first the first text of an entry; the one behind its last is that of the next entry */
function nulsIn(
  { rows, group }: RecordBatchColumn,
  { bytes, offsets }: TextVector,
  first: (entry: number) => number,
): number {
  if (bytes.indexOf(0) < 0) return 0
  let nuls = 0
  for (let row = 0; row < rows; row++) {
    const entry = group === null ? row : (group.indices?.[row] ?? 0)
    for (let at = offsets[first(entry)]!; at < offsets[first(entry + 1)]!; at++) if (bytes[at] === 0) nuls++
  }
  return nuls
}
