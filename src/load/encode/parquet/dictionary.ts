import {
  type Encodings,
  type Int64,
  type IntegerVector,
  int64,
  type TextVector,
} from '../../../core/index.ts'
import { type RecordBatchColumn, totalRows } from '../record-batch-column.ts'
import { scratchUint32 } from './rows.ts'

/**
 * Most slots that a lookup reads. A table is at most half full, so lookups are far shorter unless someone chose strings
 * whose hashes collide. Then the dictionary reports that it is full, instead of getting slow.
 */
const MAX_PROBES = 256

/** Codes have at most 24 bits. */
const MAX_COUNT = 1 << 24

const FIRST_SLOTS = 1 << 7
const FIRST_BYTES = 1 << 12
/** Larger memory is not kept for the next column. */
const MAX_KEPT_SLOTS = 1 << 18
const MAX_KEPT_BYTES = 1 << 23

/** Distinct strings. The code of a string is its index, in the order of first use. */
export class TextDictionary {
  count = 0
  /** Bytes of all strings. */
  byteLength = 0
  #bytes = new Uint8Array(FIRST_BYTES)
  #offsets = new Uint32Array(FIRST_SLOTS / 2)
  #hashes = new Int32Array(FIRST_SLOTS / 2 - 1)
  /** Hash table with open addressing. A slot has a code + 1; 0: empty. */
  #table = new Uint32Array(FIRST_SLOTS)

  /** Removes all strings. The result of an earlier `texts` is invalid then. */
  clear(): void {
    this.count = 0
    this.byteLength = 0
    if (this.#bytes.length > MAX_KEPT_BYTES) this.#bytes = new Uint8Array(FIRST_BYTES)
    if (this.#table.length > MAX_KEPT_SLOTS) {
      this.#offsets = new Uint32Array(FIRST_SLOTS / 2)
      this.#hashes = new Int32Array(FIRST_SLOTS / 2 - 1)
      this.#table = new Uint32Array(FIRST_SLOTS)
    } else this.#table.fill(0)
  }

  /**
   * Writes the codes of the strings `[from, to)` to `codeOf`, and -1 for nulls. All callers share this loop, so that the
   * functions that it calls are inlined once.
   * @returns false when the dictionary is full
   */
  internAll({ offsets, bytes, valid }: TextVector, from: number, to: number, codeOf: Int32Array): boolean {
    for (let i = from; i < to; i++) {
      codeOf[i - from] = -1
      if (valid !== null && valid[i] === 0) continue
      const code = this.intern(bytes, offsets[i]!, offsets[i + 1]!)
      if (code < 0) return false
      codeOf[i - from] = code
    }
    return true
  }

  /** The code of the string `source[from..to)`; -1 when it is new and the dictionary is full. */
  intern(source: Uint8Array, from: number, to: number): number {
    const hash = hashOf(source, from, to)
    const mask = this.#table.length - 1
    let slot = hash & mask
    for (let probes = 0; probes < MAX_PROBES; probes++) {
      const code = this.#table[slot]! - 1
      if (code < 0) return this.#add(source, from, to, hash, slot)
      if (this.#hashes[code] === hash && this.#equals(code, source, from, to)) return code
      slot = (slot + 1) & mask
    }
    return -1
  }

  /** All strings, by code. Valid until `clear`. */
  texts(): TextVector {
    return {
      kind: 'text',
      offsets: this.#offsets.subarray(0, this.count + 1),
      bytes: this.#bytes.subarray(0, this.byteLength),
      valid: null,
    }
  }

  #equals(code: number, source: Uint8Array, from: number, to: number): boolean {
    const start = this.#offsets[code]!
    if (this.#offsets[code + 1]! - start !== to - from) return false
    const bytes = this.#bytes
    for (let i = 0; i < to - from; i++) if (bytes[start + i] !== source[from + i]) return false
    return true
  }

  #add(source: Uint8Array, from: number, to: number, hash: number, slot: number): number {
    const end = this.byteLength + to - from
    if (this.count === MAX_COUNT) return -1
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, this.#bytes.length * 2))
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    const bytes = this.#bytes
    for (let i = from, at = this.byteLength; i < to; i++) bytes[at++] = source[i]!
    const code = this.count++
    this.byteLength = end
    this.#offsets[code + 1] = end
    this.#hashes[code] = hash
    this.#table[slot] = code + 1
    if (this.count === this.#hashes.length) this.#grow()
    return code
  }

  #grow(): void {
    const size = this.#table.length * 2
    const offsets = new Uint32Array(size / 2)
    offsets.set(this.#offsets)
    const hashes = new Int32Array(size / 2 - 1)
    hashes.set(this.#hashes)
    const table = new Uint32Array(size)
    for (let code = 0; code < this.count; code++) {
      let slot = hashes[code]! & (size - 1)
      while (table[slot] !== 0) slot = (slot + 1) & (size - 1)
      table[slot] = code + 1
    }
    this.#offsets = offsets
    this.#hashes = hashes
    this.#table = table
  }
}

/** FNV over words of four bytes, mixed at the end so that the low bits depend on all of them. */
function hashOf(source: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5 ^ (to - from)
  let at = from
  for (; at + 4 <= to; at += 4) {
    const word = source[at]! | (source[at + 1]! << 8) | (source[at + 2]! << 16) | (source[at + 3]! << 24)
    hash = Math.imul(hash ^ word, 0x01000193)
    hash ^= hash >>> 15
  }
  for (; at < to; at++) hash = Math.imul(hash ^ source[at]!, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}

/** After this number of rows, a column of mostly distinct strings gets no dictionary. */
const TRIAL_ROWS = 1 << 14
/** "Mostly": more than three quarters. */
const MAX_DISTINCT = TRIAL_ROWS * 0.75

/** Reused for every column. */
const dictionary = new TextDictionary()

/**
 * The distinct strings of a row group and the code of each row, nulls left out; null when this takes more bytes than the
 * strings themselves. There is no other limit: a few thousand long descriptions would exceed the 1 MB of many writers,
 * and would then be written once per row.
 * @returns a result that is valid until the next call
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
    // A table is coded in one step, rows without a table in steps of `TRIAL_ROWS`.
    const step = group === null ? TRIAL_ROWS : Math.max(1, size)
    for (let from = 0; from < size; from += step) {
      const to = Math.min(size, from + step)
      const codeOf = new Int32Array(to - from)
      if (!dictionary.internAll(values, from, to, codeOf)) return null
      count = group === null ? codePresent(codeOf, codes, count) : codeRows(column, codeOf, codes, count)
      // The first rows decide, with and without a table, so that the encoding depends on the rows alone.
      if (!isTried && count >= TRIAL_ROWS) {
        isTried = true
        if (distinct(codes, TRIAL_ROWS) > MAX_DISTINCT) return null
      }
    }
  }
  const coded = { dictionary: dictionary.texts(), codes: codes.subarray(0, count) }
  return pays(coded, lengthBytes(encodings)) ? coded : null
}

/** Appends the codes, nulls (-1) left out; returns the new count. */
function codePresent(codeOf: Int32Array, codes: Uint32Array, count: number): number {
  let at = count
  for (let i = 0; i < codeOf.length; i++) {
    const code = codeOf[i]!
    if (code >= 0) codes[at++] = code
  }
  return at
}

/** Number of distinct strings in the first rows. Codes are assigned in the order of first use. */
function distinct(codes: Uint32Array, rows: number): number {
  let last = 0
  for (let row = 0; row < rows; row++) last = Math.max(last, codes[row]!)
  return last + 1
}

/** Approximate bytes for the length of a string outside a dictionary. */
export function lengthBytes(encodings: Encodings): number {
  return encodings === 'plain' ? 4 : 1
}

/** Whether the dictionary and the codes are smaller than the strings with their lengths. */
function pays(
  { dictionary: { offsets }, codes }: { dictionary: TextVector; codes: Uint32Array },
  lengthBytes: number,
): boolean {
  const count = offsets.length - 1
  let plain = codes.length * lengthBytes
  for (let i = 0; i < codes.length; i++) plain += offsets[codes[i]! + 1]! - offsets[codes[i]!]!
  return offsets[count]! + count * 4 + (codes.length * bitWidthOf(count)) / 8 < plain
}

/** Bits of a code of `count` values. For one value, 0 bits would be enough, but some readers do not support that. */
export function bitWidthOf(count: number): number {
  return Math.max(1, 32 - Math.clz32(count - 1))
}

/**
 * The distinct integers of a row group and the code of each row, nulls left out. Null unless every record batch has them
 * in a group, and at most half of the rows are distinct. Integers without a group change slowly from row to row, so
 * deltas are smaller.
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
