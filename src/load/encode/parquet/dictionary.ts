import { type Encodings, getOrInsert, type Int64, int64 } from '../../../core/index.ts'
import { type IntegerVector, TextDictionary, type TextVector } from '../../../rows/index.ts'
import { type RecordBatchColumn, totalRows } from '../record-batch-column.ts'
import { scratch } from './rows.ts'

/** After this number of rows, a column of mostly distinct strings gets no dictionary. */
const TRIAL_ROWS = 1 << 14
/** "Mostly": more than three quarters. */
const MAX_DISTINCT = TRIAL_ROWS * 0.75

/** Reused for every column. */
const dictionary = new TextDictionary()

/**
 * The code of each row, nulls left out; null when this takes more bytes than the strings. There is no other limit: many
 * writers have 1 MB, and write long descriptions once per row beyond it. The result is valid until the next call.
 */
export function codeTexts(
  columns: readonly RecordBatchColumn<TextVector>[],
  encodings: Encodings,
): { dictionary: TextVector; codes: Uint32Array } | null {
  dictionary.clear()
  const codes = scratch(Uint32Array, totalRows(columns))
  let count = 0
  let isTried = false
  for (const column of columns) {
    const { rows, group, values } = column
    const size = group?.size ?? rows
    // A table is coded in one step, rows without a table in steps of `TRIAL_ROWS`.
    const step = group === null ? TRIAL_ROWS : Math.max(1, size)
    for (let from = 0; from < size; from += step) {
      const to = Math.min(size, from + step)
      const codeOf = new Int32Array(to - from)
      if (!dictionary.internAll(values, from, to, codeOf)) return null
      count = codeRows(group === null ? { rows: to - from, group } : column, codeOf, codes, count)
      // The first rows decide, with and without a table, so that the encoding depends on the rows alone.
      if (!isTried && count >= TRIAL_ROWS) {
        isTried = true
        if (distinct(codes, TRIAL_ROWS) > MAX_DISTINCT) return null
      }
    }
  }
  const coded = { dictionary: dictionary.texts(), codes: codes.subarray(0, count) }
  // Approximate bytes for the length of a string outside a dictionary.
  return pays(coded, encodings === 'plain' ? 4 : 1) ? coded : null
}

/** Number of distinct strings in the first rows. Codes are assigned in the order of first use. */
function distinct(codes: Uint32Array, rows: number): number {
  let last = 0
  for (let row = 0; row < rows; row++) last = Math.max(last, codes[row]!)
  return last + 1
}

/** Whether the dictionary and the codes are smaller than the strings with their lengths: mostly the first rows tell. */
function pays(
  { dictionary: { offsets }, codes }: { dictionary: TextVector; codes: Uint32Array },
  lengthBytes: number,
): boolean {
  const count = offsets.length - 1
  const coded = offsets[count]! + count * 4 + (codes.length * bitWidthOf(count)) / 8
  let plain = codes.length * lengthBytes
  for (let i = 0; i < codes.length && plain <= coded; i++)
    plain += offsets[codes[i]! + 1]! - offsets[codes[i]!]!
  return coded < plain
}

/** Bits of a code of `count` values. For one value, 0 bits would be enough, but some readers do not support that. */
export function bitWidthOf(count: number): number {
  return Math.max(1, 32 - Math.clz32(count - 1))
}

/** Null unless all are in groups and at most half of the rows are distinct: else deltas are smaller. */
export function codeNumbers(
  columns: readonly RecordBatchColumn<IntegerVector>[],
): { dictionary: Float64Array | BigInt64Array; codes: Uint32Array } | null {
  if (columns.some(({ group }) => group === null)) return null
  const rows = totalRows(columns)
  const numbers = new Map<Int64, number>()
  let isLarge = false
  const codes = scratch(Uint32Array, rows)
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
      codeOf[entry] = getOrInsert(numbers, value, () => numbers.size)
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
function codeRows(
  { rows, group }: Pick<RecordBatchColumn, 'rows' | 'group'>,
  codeOf: Int32Array,
  codes: Uint32Array,
  count: number,
): number {
  const indices = group?.indices ?? null
  let at = count
  for (let row = 0; row < rows; row++) {
    const code = codeOf[indices !== null ? indices[row]! : group === null ? row : 0]!
    if (code >= 0) codes[at++] = code
  }
  return at
}
