import type { TextVector } from '../../../rows/index.ts'
import { checkSize } from '../byte-buffer.ts'
import { eachEntry, type RecordBatchColumn, totalRows, type VectorOf } from '../record-batch-column.ts'

type Values = Uint8Array | Float64Array | BigInt64Array

/** Copies the values of all rows to `to`, nulls left out. */
export function presentValues<T extends Values>(
  columns: readonly RecordBatchColumn<VectorOf<'number' | 'int64' | 'boolean'> & { readonly values: T }>[],
  to: T,
): T {
  let count = 0
  for (const column of columns) {
    const { values, valid } = column.values
    eachEntry(column, (entry) => {
      if (valid === null || valid[entry] === 1) to[count++] = values[entry]!
    })
  }
  return to.subarray(0, count) as T
}

/** The strings of all rows, nulls left out. */
export function presentTexts(columns: readonly RecordBatchColumn<TextVector>[]): TextVector {
  const offsets = scratch(Uint32Array, totalRows(columns) + 1)
  offsets[0] = 0
  let count = 0
  let end = 0
  for (const column of columns) {
    const { offsets: source, valid } = column.values
    eachEntry(column, (entry) => {
      if (valid !== null && valid[entry] === 0) return
      end += source[entry + 1]! - source[entry]!
      offsets[++count] = end
    })
  }
  // A long string that many rows point to is copied for each of them.
  checkSize(end)
  const bytes = scratch(Uint8Array, end)
  let at = 0
  for (const column of columns) {
    const source = column.values
    const copy = (from: number, to: number): void => {
      const run = source.bytes.subarray(source.offsets[from], source.offsets[to])
      bytes.set(run, at)
      at += run.length
    }
    // A null has no bytes.
    if (column.group === null) copy(0, column.rows)
    else eachEntry(column, (entry) => copy(entry, entry + 1))
  }
  return { kind: 'text', offsets: offsets.subarray(0, count + 1), bytes, valid: null }
}

export function listItems(column: RecordBatchColumn<VectorOf<'list'>>): RecordBatchColumn<TextVector> {
  const { items, offsets } = column.values
  const size = items.offsets.length - 1
  if (column.group === null) return { rows: size, group: null, values: items }
  let count = 0
  eachEntry(column, (entry) => {
    count += offsets[entry + 1]! - offsets[entry]!
  })
  const indices = scratch(Uint32Array, count)
  let at = 0
  eachEntry(column, (entry) => {
    for (let item = offsets[entry]!; item < offsets[entry + 1]!; item++) indices[at++] = item
  })
  return { rows: count, group: { size, indices }, values: items }
}

/** Validity of all rows, 1 or 0; null: no row is null. */
export function validRows(columns: readonly RecordBatchColumn[]): Uint8Array | null {
  if (columns.every(({ values }) => values.valid === null)) return null
  const rows = scratch(Uint8Array, totalRows(columns)).fill(1)
  let row = 0
  for (const column of columns) {
    const { valid } = column.values
    if (valid === null) row += column.rows
    else
      eachEntry(column, (entry) => {
        rows[row++] = valid[entry]!
      })
  }
  return rows
}

// Scratch memory, reused for each column chunk: else each row group would leave ten megabytes of late garbage.
// The arrays are not cleared, and are valid until `freeScratch`.

/** Enough for the largest column of a row group of usual rows. The unused part takes no memory. */
const MIN_BYTES = 8 << 20
/** Larger column chunks allocate the rest. */
const MAX_KEPT_BYTES = 32 << 20

let memory = new ArrayBuffer(0)
let taken = 0

/** Frees all arrays, and makes room for what did not fit since the last call. */
export function freeScratch(): void {
  if (taken > memory.byteLength && memory.byteLength < MAX_KEPT_BYTES) {
    const wanted = Math.max(MIN_BYTES, 2 ** Math.ceil(Math.log2(taken)))
    memory = new ArrayBuffer(Math.min(MAX_KEPT_BYTES, wanted))
  }
  taken = 0
}

export function scratch<T>(
  Type: { new (memory: ArrayBuffer, start: number, length: number): T; readonly BYTES_PER_ELEMENT: number },
  length: number,
): T {
  const bytes = Type.BYTES_PER_ELEMENT * length
  const start = taken
  taken += Math.ceil(bytes / 8) * 8
  return taken <= memory.byteLength
    ? new Type(memory, start, length)
    : new Type(new ArrayBuffer(bytes), 0, length)
}
