import { int64, int64ToJson } from '../core/index.ts'
import {
  decodeRecordBatch,
  encodeRecordBatch,
  type RecordBatch,
  type Span,
  type Times,
} from '../rows/index.ts'
import { chooseRows, countRows, type RowChoice, takeRows } from './take-rows.ts'

export class PageRows {
  /** Views on `bytes`. */
  readonly recordBatch: RecordBatch

  /** @param times `imported_at` of each row; null: the rows have none */
  constructor(
    readonly bytes: Uint8Array,
    readonly times: Times | null,
  ) {
    this.recordBatch = decodeRecordBatch(bytes)
  }
}

/** The rows of a page that go into one folder. */
export type Slice = {
  readonly page: PageRows
  readonly folder: string
  /** Number of the schema of the rows. */
  readonly schema: number
  readonly rows: RowChoice
  /** Partitions of the rows, one range after the other. */
  readonly ranges: readonly PartitionRange[]
}

/** A number of rows of a partition, which is given by its key. */
export type PartitionRange = { readonly partition: string; readonly rows: number }

/** Rows `[from, to)` of a slice. */
export function cutSlice(slice: Slice, from: number, to: number): Slice {
  if (from === 0 && to === countRows(slice.rows)) return slice
  const ranges: PartitionRange[] = []
  let start = 0
  for (const { partition, rows } of slice.ranges) {
    const left = Math.min(start + rows, to) - Math.max(start, from)
    if (left > 0) ranges.push({ partition, rows: left })
    start += rows
  }
  return { ...slice, rows: chooseRows(slice.rows, from, to), ranges }
}

/** A record batch of the slice's rows. If these are all rows of the page, it is the page's own record batch. */
export function recordBatchOf({ page, rows }: Slice): Uint8Array {
  const isWhole = countRows(rows) === page.recordBatch.rows && !(rows instanceof Uint32Array)
  return isWhole ? page.bytes : encodeRecordBatch(takeRows(page.recordBatch, rows))
}

/** Least and greatest `imported_at` of rows `[from, to)` of a slice; null: the rows have none. */
export function importedAt(
  { page: { times }, rows }: { readonly page: Pick<PageRows, 'times'>; readonly rows: RowChoice },
  from: number,
  to: number,
): Span | null {
  if (times === null || from === to) return null
  if (times instanceof Float64Array && !(rows instanceof Uint32Array)) {
    return spanOfDoubles(times, rows.from + from, rows.from + to)
  }
  const timeAt = (index: number): number | bigint =>
    times[rows instanceof Uint32Array ? rows[index]! : rows.from + index]!
  let min = timeAt(from)
  let max = min
  for (let index = from + 1; index < to; index++) {
    const time = timeAt(index)
    if (time < min) min = time
    if (time > max) max = time
  }
  return { min: int64ToJson(int64(min)), max: int64ToJson(int64(max)) }
}

/** As `importedAt`, for the usual representation. */
function spanOfDoubles(times: Float64Array, from: number, to: number): Span {
  let min = times[from]!
  let max = min
  for (let row = from + 1; row < to; row++) {
    const time = times[row]!
    if (time < min) min = time
    if (time > max) max = time
  }
  return { min, max }
}
