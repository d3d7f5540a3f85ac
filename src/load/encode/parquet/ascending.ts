import type { IntegerVector } from '../../../core/index.ts'
import type { FrameColumn } from '../frame-column.ts'
import { eachEntry } from './rows.ts'

/** Whether no row has a lesser number than the one before it, and none has none. */
export function isAscending(columns: readonly FrameColumn<IntegerVector>[]): boolean {
  let last: number | bigint = Number.NEGATIVE_INFINITY
  let ascending = true
  for (const column of columns) {
    const { values, valid } = column.values
    if (valid !== null) return false
    if (column.group === null) {
      for (let row = 0; row < values.length; row++) {
        if (values[row]! < last) return false
        last = values[row]!
      }
    } else {
      eachEntry(column, (entry) => {
        ascending &&= values[entry]! >= last
        last = values[entry]!
      })
    }
  }
  return ascending
}
