import type { Int64Vector, IntegerVector, NumberVector, TextVector } from '../../../rows/index.ts'
import { checkSize } from '../byte-buffer.ts'
import { eachEntry, type RecordBatchColumn, totalRows, type VectorOf } from '../record-batch-column.ts'

/** The rows of all record batches as one number vector without a group. */
export function numberRows(columns: readonly RecordBatchColumn<NumberVector>[]): NumberVector {
  const [only] = columns
  if (columns.length === 1 && only!.group === null) return only!.values
  const values = scratchFloat64(totalRows(columns))
  let row = 0
  for (const column of columns) {
    const source = column.values.values
    if (column.group === null) values.set(source, row)
    else {
      let at = row
      eachEntry(column, (entry) => {
        values[at++] = source[entry]!
      })
    }
    row += column.rows
  }
  return { kind: 'number', values, valid: validRows(columns) }
}

export function int64Rows(columns: readonly RecordBatchColumn<IntegerVector>[]): Int64Vector {
  const values = new BigInt64Array(totalRows(columns))
  let row = 0
  for (const column of columns) {
    const source = column.values.values
    eachEntry(column, (entry) => {
      values[row++] = BigInt(source[entry]!)
    })
  }
  return { kind: 'int64', values, valid: validRows(columns) }
}

export function booleanRows(columns: readonly RecordBatchColumn<VectorOf<'boolean'>>[]): VectorOf<'boolean'> {
  const values = scratchBytes(totalRows(columns))
  let row = 0
  for (const column of columns) {
    const source = column.values.values
    eachEntry(column, (entry) => {
      values[row++] = source[entry]!
    })
  }
  return { kind: 'boolean', values, valid: validRows(columns) }
}

export function textRows(columns: readonly RecordBatchColumn<TextVector>[]): TextVector {
  const [only] = columns
  if (columns.length === 1 && only!.group === null) return only!.values
  const offsets = scratchUint32(totalRows(columns) + 1)
  offsets[0] = 0
  let row = 0
  let end = 0
  for (const column of columns) {
    const source = column.values.offsets
    eachEntry(column, (entry) => {
      end += source[entry + 1]! - source[entry]!
      offsets[++row] = end
    })
  }
  // A long string that many rows point to is copied for each of them.
  checkSize(end)
  const bytes = scratchBytes(end)
  let at = 0
  for (const column of columns) {
    const source = column.values
    if (column.group === null) {
      const run = source.bytes.subarray(source.offsets[0], source.offsets[column.rows])
      bytes.set(run, at)
      at += run.length
    } else {
      eachEntry(column, (entry) => {
        const text = source.bytes.subarray(source.offsets[entry], source.offsets[entry + 1])
        bytes.set(text, at)
        at += text.length
      })
    }
  }
  return { kind: 'text', offsets, bytes, valid: validRows(columns) }
}

export function listOffsets(columns: readonly RecordBatchColumn<VectorOf<'list'>>[]): Uint32Array {
  const offsets = scratchUint32(totalRows(columns) + 1)
  offsets[0] = 0
  let row = 0
  for (const column of columns) {
    const source = column.values.offsets
    eachEntry(column, (entry) => {
      offsets[row + 1] = offsets[row]! + source[entry + 1]! - source[entry]!
      row++
    })
  }
  return offsets
}

export function listItems(column: RecordBatchColumn<VectorOf<'list'>>): RecordBatchColumn<TextVector> {
  const { items, offsets } = column.values
  const size = items.offsets.length - 1
  if (column.group === null) return { rows: size, group: null, values: items }
  let count = 0
  eachEntry(column, (entry) => {
    count += offsets[entry + 1]! - offsets[entry]!
  })
  const indices = scratchUint32(count)
  let at = 0
  eachEntry(column, (entry) => {
    for (let item = offsets[entry]!; item < offsets[entry + 1]!; item++) indices[at++] = item
  })
  return { rows: count, group: { size, indices }, values: items }
}

/** Validity of all rows, 1 or 0; null: no row is null. */
export function validRows(columns: readonly RecordBatchColumn[]): Uint8Array | null {
  if (columns.every(({ values }) => values.valid === null)) return null
  const valid = scratchBytes(totalRows(columns)).fill(1)
  let row = 0
  for (const column of columns) {
    const { rows, group } = column
    const source = column.values.valid
    if (source !== null) {
      if (group === null) valid.set(source.subarray(0, rows), row)
      else if (group.indices === null) valid.fill(source[0]!, row, row + rows)
      else gather(source, group.indices, rows, valid, row)
    }
    row += rows
  }
  return valid
}

function gather(
  from: Uint8Array,
  indices: ArrayLike<number>,
  rows: number,
  to: Uint8Array,
  at: number,
): void {
  for (let i = 0; i < rows; i++) to[at + i] = from[indices[i]!]!
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

export function scratchBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(...take(length), length)
}

export function scratchUint32(length: number): Uint32Array<ArrayBuffer> {
  return new Uint32Array(...take(4 * length), length)
}

export function scratchFloat64(length: number): Float64Array<ArrayBuffer> {
  return new Float64Array(...take(8 * length), length)
}

function take(bytes: number): [ArrayBuffer, number] {
  const start = taken
  taken += Math.ceil(bytes / 8) * 8
  return taken <= memory.byteLength ? [memory, start] : [new ArrayBuffer(bytes), 0]
}
