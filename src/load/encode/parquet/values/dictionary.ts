import {
  type Encodings,
  type Int64,
  type IntegerVector,
  int64,
  type TextVector,
} from '../../../../core/index.ts'
import type { RecordBatchColumn } from '../../record-batch-column.ts'
import { totalRows } from './rows.ts'
import { scratchUint32 } from './scratch.ts'
import { TextDictionary } from './text-dictionary.ts'

/** After so many rows a column of mostly distinct texts is given up. */
const TRIAL_ROWS = 1 << 14
/** Of so many rows more than three quarters are most. */
const MOST_DISTINCT = TRIAL_ROWS * 0.75

/** Used again for every column. */
const dictionary = new TextDictionary()

/**
 * The texts of a row group as numbers of distinct ones, nulls left out; null where that takes more room
 * than the texts themselves. There is no other limit: the 1 MB where many writers stop would be passed by
 * some thousands of long descriptions, which then were written again and again.
 * @returns what is good until the next call
 */
export function codeTexts(
  columns: readonly RecordBatchColumn<TextVector>[],
  encodings: Encodings,
): { dictionary: TextVector; codes: Uint32Array } | null {
  dictionary.clear()
  const codes = scratchUint32(totalRows(columns))
  let count = 0
  let isTried = false
  for (const column of columns) {
    const { rows, group, values } = column
    const size = group?.size ?? rows
    // A table is coded at once, rows by themselves as many at a time as are tried.
    const step = group === null ? TRIAL_ROWS : Math.max(1, size)
    for (let from = 0; from < size; from += step) {
      const to = Math.min(size, from + step)
      const codeOf = new Int32Array(to - from)
      if (!dictionary.internAll(values, from, to, codeOf)) return null
      count = group === null ? codePresent(codeOf, codes, count) : codeRows(column, codeOf, codes, count)
      // Whether rows come with their texts or with a table of these: how they are encoded depends on the rows alone.
      if (!isTried && count >= TRIAL_ROWS) {
        isTried = true
        if (distinct(codes, TRIAL_ROWS) > MOST_DISTINCT) return null
      }
    }
  }
  const coded = { dictionary: dictionary.texts(), codes: codes.subarray(0, count) }
  return pays(coded, lengthBytes(encodings)) ? coded : null
}

/** Appends the codes that are there, nulls (-1) left out; returns the new count. */
function codePresent(codeOf: Int32Array, codes: Uint32Array, count: number): number {
  let at = count
  for (let i = 0; i < codeOf.length; i++) {
    const code = codeOf[i]!
    if (code >= 0) codes[at++] = code
  }
  return at
}

/** How many texts the first rows have; numbers are given in the order in which these come. */
function distinct(codes: Uint32Array, rows: number): number {
  let last = 0
  for (let row = 0; row < rows; row++) last = Math.max(last, codes[row]!)
  return last + 1
}

/** What the length of a text takes, more or less, that stands by itself. */
export function lengthBytes(encodings: Encodings): number {
  return encodings === 'plain' ? 4 : 1
}

/** Whether the dictionary and the numbers are smaller than the texts with the bytes of their lengths. */
function pays(
  { dictionary: { offsets }, codes }: { dictionary: TextVector; codes: Uint32Array },
  lengthBytes: number,
): boolean {
  const count = offsets.length - 1
  let plain = codes.length * lengthBytes
  for (let i = 0; i < codes.length; i++) plain += offsets[codes[i]! + 1]! - offsets[codes[i]!]!
  return offsets[count]! + count * 4 + (codes.length * bitWidthOf(count)) / 8 < plain
}

/** Bits for the number of one of `count` values; a width of 0 would do for one, but not every reader knows that. */
export function bitWidthOf(count: number): number {
  return Math.max(1, 32 - Math.clz32(count - 1))
}

/**
 * The numbers of a row group as numbers of distinct ones, nulls left out, where every record batch has them in
 * a group and few enough; else null. Numbers that stand in every row change slowly: deltas serve them.
 */
export function codeNumbers(
  columns: readonly RecordBatchColumn<IntegerVector>[],
): { dictionary: Float64Array | BigInt64Array; codes: Uint32Array } | null {
  if (columns.some(({ group }) => group === null)) return null
  const rows = totalRows(columns)
  const numbers = new Map<Int64, number>()
  let isLarge = false
  const codes = scratchUint32(rows)
  let count = 0
  for (const column of columns) {
    const { values, valid } = column.values
    const size = column.group?.size ?? 0
    const codeOf = new Int32Array(size)
    for (let entry = 0; entry < size; entry++) {
      codeOf[entry] = -1
      if (valid !== null && valid[entry] === 0) continue
      const value = int64(values[entry]!)
      if (typeof value === 'bigint') isLarge = true
      let code = numbers.get(value)
      if (code === undefined) {
        code = numbers.size
        numbers.set(value, code)
      }
      codeOf[entry] = code
    }
    if (numbers.size > rows / 2) return null
    count = codeRows(column, codeOf, codes, count)
  }
  if (count === 0) return null
  const dictionary = isLarge
    ? BigInt64Array.from(numbers.keys(), BigInt)
    : Float64Array.from(numbers.keys(), Number)
  return { dictionary, codes: codes.subarray(0, count) }
}

/** Appends the code of every row's entry, nulls (-1) left out; returns the new count. */
function codeRows(column: RecordBatchColumn, codeOf: Int32Array, codes: Uint32Array, count: number): number {
  const indices = column.group?.indices ?? null
  if (indices === null) {
    const code = codeOf[0]!
    if (code < 0) return count
    codes.fill(code, count, count + column.rows)
    return count + column.rows
  }
  let at = count
  for (let row = 0; row < column.rows; row++) {
    const code = codeOf[indices[row]!]!
    if (code >= 0) codes[at++] = code
  }
  return at
}
