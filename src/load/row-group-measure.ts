import { crc32 } from 'node:zlib'
import { type Group, getOrInsert, type RecordBatch, type TextVector, type Vector } from '../core/index.ts'
import { countRows, type RowChoice } from './take-rows.ts'

// Limits memory when values are long.
const MAX_BYTES = 16 << 20
/** A row group that is full by bytes ends at a multiple of this number of rows. */
const STEP_ROWS = 1000

/**
 * String columns whose values many rows share, however a page represents them. Each value counts once per row group,
 * as it is stored once. Values of other columns count for each row.
 */
const SHARED = /^(?:source_|query_)/

/**
 * Measures how full a row group is. It ends after `maxRows` rows, or at the first multiple of 1,000 rows at which its
 * strings take 16 MB. This depends on its rows alone, not on how pages or record batches divide them.
 */
export class RowGroupMeasure {
  readonly #maxRows: number
  #rows = 0
  #bytes = 0
  #isFull = false
  /** Checksums of the shared strings that were counted. */
  #counted = new Set<number>()

  constructor(maxRows: number) {
    this.#maxRows = maxRows
  }

  get rows(): number {
    return this.#rows
  }

  get isFull(): boolean {
    return this.#isFull
  }

  reset(): void {
    this.#rows = 0
    this.#bytes = 0
    this.#isFull = false
    this.#counted.clear()
  }

  /** Counts rows from index `from` on, as many as there is room for, at most `most`. @returns how many */
  take(recordBatch: BatchSizes, rows: RowChoice, from: number, most: number): number {
    const end = Math.min(countRows(rows), from + most)
    const isWhole = from === 0 && end === recordBatch.own.length && !(rows instanceof Uint32Array)
    return isWhole && this.#hasRoomFor(recordBatch)
      ? this.#takeAll(recordBatch)
      : this.#takeSome(recordBatch, rows, from, end)
  }

  /** Whether the whole record batch fits. */
  #hasRoomFor({ own, most }: BatchSizes): boolean {
    return this.#rows + own.length <= this.#maxRows && this.#bytes + most < MAX_BYTES
  }

  #takeAll({ own, total, groups }: BatchSizes): number {
    this.#bytes += total
    for (const group of groups) {
      const { size, indices } = group
      const used = new Uint8Array(size)
      if (indices === null) used[0] = 1
      else for (let row = 0; row < indices.length; row++) used[indices[row]!] = 1
      for (let entry = 0; entry < size; entry++) if (used[entry] === 1) this.#countShared(group, entry)
    }
    this.#rows += own.length
    this.#isFull = this.#rows === this.#maxRows
    return own.length
  }

  #takeSome({ own, groups }: BatchSizes, rows: RowChoice, from: number, end: number): number {
    const seen = groups.map(({ size }) => new Uint8Array(size))
    let index = from
    while (index < end && !this.#isFull) {
      const row = rows instanceof Uint32Array ? rows[index]! : rows.from + index
      this.#bytes += own[row]!
      for (const [g, group] of groups.entries()) {
        const entry = group.indices === null ? 0 : group.indices[row]!
        if (seen[g]![entry] === 1) continue
        seen[g]![entry] = 1
        this.#countShared(group, entry)
      }
      this.#rows++
      index++
      this.#isFull =
        this.#rows === this.#maxRows || (this.#rows % STEP_ROWS === 0 && this.#bytes >= MAX_BYTES)
    }
    return index - from
  }

  #countShared({ columns }: SharedTexts, entry: number): void {
    let bytes = 0
    for (const { offsets } of columns) bytes += offsets[entry + 1]! - offsets[entry]!
    const { offsets, bytes: texts } = columns[0]!
    // A collision only makes the row group slightly larger, in the same way on each run.
    const checksum = crc32(texts.subarray(offsets[entry], offsets[entry + 1]), bytes)
    if (this.#counted.has(checksum)) return
    this.#counted.add(checksum)
    this.#bytes += bytes
  }
}

/** Bytes of the strings in a record batch. */
export type BatchSizes = {
  /** By row: bytes of the strings that it does not share. */
  readonly own: Float64Array
  /** Sum of `own`. */
  readonly total: number
  /** An upper bound of the bytes of all rows, shared strings included. */
  readonly most: number
  readonly groups: readonly SharedTexts[]
}

/** Strings that rows share. */
type SharedTexts = Group & { readonly columns: readonly TextVector[] }

export function byteSizes(recordBatch: RecordBatch): BatchSizes {
  const own = new Float64Array(recordBatch.rows)
  const shared = new Map<Group, TextVector[]>()
  for (const { name, group, values } of recordBatch.columns) {
    if (values.kind !== 'text' && values.kind !== 'list') continue
    const table = group === null ? null : recordBatch.groups[group]!
    if (table === null) addRows(own, values)
    else if (values.kind !== 'text' || !SHARED.test(name)) addEntries(own, table, values)
    else getOrInsert(shared, table, () => []).push(values)
  }
  let total = 0
  for (let row = 0; row < own.length; row++) total += own[row]!
  const groups = [...shared].map(([group, columns]) => ({ ...group, columns }))
  const most = groups.reduce((sum, { columns }) => sum + columns.reduce(plusBytes, 0), total)
  return { own, total, most, groups }
}

function plusBytes(sum: number, { bytes }: TextVector): number {
  return sum + bytes.length
}

type Texts = TextVector | Extract<Vector, { kind: 'list' }>

/** Adds the bytes of a column with a value for each row. */
function addRows(own: Float64Array, texts: Texts): void {
  if (texts.kind === 'text') {
    const { offsets } = texts
    for (let row = 0; row < own.length; row++) own[row]! += offsets[row + 1]! - offsets[row]!
  } else for (let row = 0; row < own.length; row++) own[row]! += bytesOf(texts, row)
}

/** The same for a column with a table of values. */
function addEntries(own: Float64Array, { size, indices }: Group, texts: Texts): void {
  const bytes = Float64Array.from({ length: size }, (_, entry) => bytesOf(texts, entry))
  if (indices === null) for (let row = 0; row < own.length; row++) own[row]! += bytes[0]!
  else for (let row = 0; row < own.length; row++) own[row]! += bytes[indices[row]!]!
}

function bytesOf(texts: Texts, at: number): number {
  if (texts.kind === 'text') return texts.offsets[at + 1]! - texts.offsets[at]!
  const { offsets, items } = texts
  return items.offsets[offsets[at + 1]!]! - items.offsets[offsets[at]!]!
}
