import { getOrInsert } from '../core/index.ts'
import type { Group, RecordBatch, TextVector, Vector } from '../rows/index.ts'
import { countRows, type RowChoice } from './take-rows.ts'

// Limits memory when values are long. Usual rows take 450 bytes, most of them for descriptions of sources.
const MAX_BYTES = 64 << 20
/** A row group that is full by bytes ends at a multiple of this number of rows. */
const STEP_ROWS = 1000

/** The rows alone decide, not how pages or record batches divide them or represent what they have in common. */
export class RowGroupMeasure {
  readonly #maxRows: number
  #rows = 0
  #bytes = 0

  constructor(maxRows: number) {
    this.#maxRows = maxRows
  }

  get rows(): number {
    return this.#rows
  }

  get isFull(): boolean {
    return this.#rows === this.#maxRows || (this.#rows % STEP_ROWS === 0 && this.#bytes >= MAX_BYTES)
  }

  reset(): void {
    this.#rows = 0
    this.#bytes = 0
  }

  /** Counts rows from index `from` on, as many as there is room for, at most `most`. @returns how many */
  take({ ofRow, total }: BatchSizes, rows: RowChoice, from: number, most: number): number {
    const end = Math.min(countRows(rows), from + most)
    const isWhole = from === 0 && end === ofRow.length && !(rows instanceof Uint32Array)
    if (isWhole && this.#rows + end <= this.#maxRows && this.#bytes + total < MAX_BYTES) {
      this.#rows += end
      this.#bytes += total
      return end
    }
    let index = from
    while (index < end && !this.isFull) {
      this.#bytes += ofRow[rows instanceof Uint32Array ? rows[index]! : rows.from + index]!
      this.#rows++
      index++
    }
    return index - from
  }
}

/** Bytes of the strings in a record batch: of each row, as if it were alone, and their sum. */
export type BatchSizes = { readonly ofRow: Float64Array; readonly total: number }

export function byteSizes({ rows, groups, columns }: RecordBatch): BatchSizes {
  const ofRow = new Float64Array(rows)
  const ofEntries = new Map<Group, Float64Array>()
  for (const { group, values } of columns) {
    if (values.kind !== 'text' && values.kind !== 'list') continue
    const table = group === null ? null : groups[group]!
    const sizes = table === null ? ofRow : getOrInsert(ofEntries, table, () => new Float64Array(table.size))
    for (let i = 0; i < sizes.length; i++) sizes[i]! += bytesOf(values, i)
  }
  for (const [{ indices }, sizes] of ofEntries) {
    for (let row = 0; row < rows; row++) ofRow[row]! += sizes[indices === null ? 0 : indices[row]!]!
  }
  return { ofRow, total: ofRow.reduce((sum, bytes) => sum + bytes, 0) }
}

function bytesOf(texts: TextVector | Extract<Vector, { kind: 'list' }>, at: number): number {
  if (texts.kind === 'text') return texts.offsets[at + 1]! - texts.offsets[at]!
  const { offsets, items } = texts
  return items.offsets[offsets[at + 1]!]! - items.offsets[offsets[at]!]!
}
