import type { Column, Group, RecordBatch, TextVector, Vector } from '../rows/index.ts'

/** Rows of a record batch: the range `[from, to)`, or the index of each row, ascending. */
export type RowChoice = { readonly from: number; readonly to: number } | Uint32Array

export function countRows(rows: RowChoice): number {
  return rows instanceof Uint32Array ? rows.length : rows.to - rows.from
}

export function chooseRows(rows: RowChoice, from: number, to: number): RowChoice {
  return rows instanceof Uint32Array
    ? rows.subarray(from, to)
    : { from: rows.from + from, to: rows.from + to }
}

/** The result is as if the page had held only these rows: entries in order of first use, validity only where needed. */
export function takeRows(recordBatch: RecordBatch, rows: RowChoice): RecordBatch {
  const count = countRows(rows)
  const tables = recordBatch.groups.map((group) => narrowed(group, rows, count))
  const columns = recordBatch.columns.map(({ name, group, values }): Column => {
    const entries = group === null ? rows : tables[group]!.entries
    return { name, group, values: entries === null ? values : take(values, entries) }
  })
  return { rows: count, groups: tables.map(({ group }) => group), columns }
}

/** @returns the group without unused entries, and the entries that are left; null: all, unchanged */
function narrowed(
  { size, indices }: Group,
  rows: RowChoice,
  count: number,
): { readonly group: Group; readonly entries: Uint32Array | null } {
  if (indices === null) return { group: { size, indices: null }, entries: null }
  const newIndices = new Int32Array(size).fill(-1)
  const entries = new Uint32Array(Math.min(size, count))
  const narrow = new Uint32Array(count)
  let used = 0
  eachRow(rows, (row, at) => {
    const entry = indices[row]!
    if (newIndices[entry]! < 0) {
      newIndices[entry] = used
      entries[used++] = entry
    }
    narrow[at] = newIndices[entry]!
  })
  const group = { size: used, indices: used === 1 ? null : narrow }
  return { group, entries: entries.subarray(0, used) }
}

function eachRow(rows: RowChoice, visit: (row: number, at: number) => void): void {
  if (rows instanceof Uint32Array) for (let at = 0; at < rows.length; at++) visit(rows[at]!, at)
  else for (let row = rows.from, at = 0; row < rows.to; row++, at++) visit(row, at)
}

function take(vector: Vector, rows: RowChoice): Vector {
  const valid = takeValid(vector.valid, rows)
  switch (vector.kind) {
    case 'number':
      return { kind: 'number', values: takeValues(vector.values, rows), valid }
    case 'int64':
      return asDoubles(takeValues(vector.values, rows), valid)
    case 'boolean':
      return { kind: 'boolean', values: takeValues(vector.values, rows), valid }
    case 'text':
      return takeTexts(vector, rows, valid)
    case 'list': {
      const { offsets: before } = vector
      const offsets = takeOffsets(before, rows)
      const items = new Uint32Array(offsets.at(-1)!)
      eachRow(rows, (row, at) => {
        const first = before[row]!
        for (let item = offsets[at]!; item < offsets[at + 1]!; item++) {
          items[item] = first + item - offsets[at]!
        }
      })
      const texts = takeTexts(vector.items, items, takeValid(vector.items.valid, items))
      return { kind: 'list', offsets, items: texts, valid }
    }
  }
}

function takeValues<T extends Uint8Array | Float64Array | BigInt64Array>(values: T, rows: RowChoice): T {
  if (!(rows instanceof Uint32Array)) return values.subarray(rows.from, rows.to) as T
  const taken = new (values.constructor as new (length: number) => T)(rows.length)
  for (let at = 0; at < rows.length; at++) taken[at] = values[rows[at]!]!
  return taken
}

function takeValid(valid: Uint8Array | null, rows: RowChoice): Uint8Array | null {
  if (valid === null) return null
  const taken = takeValues(valid, rows)
  return taken.includes(0) ? taken : null
}

function asDoubles(values: BigInt64Array, valid: Uint8Array | null): Vector {
  const isLarge = values.some((value) => value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER)
  return isLarge
    ? { kind: 'int64', values, valid }
    : { kind: 'number', values: Float64Array.from(values, Number), valid }
}

function takeTexts(
  { offsets: before, bytes }: TextVector,
  rows: RowChoice,
  valid: Uint8Array | null,
): TextVector {
  const offsets = takeOffsets(before, rows)
  if (!(rows instanceof Uint32Array)) {
    return { kind: 'text', offsets, bytes: bytes.subarray(before[rows.from], before[rows.to]), valid }
  }
  const taken = new Uint8Array(offsets.at(-1)!)
  for (let at = 0; at < rows.length; at++) {
    taken.set(bytes.subarray(before[rows[at]!], before[rows[at]! + 1]), offsets[at]!)
  }
  return { kind: 'text', offsets, bytes: taken, valid }
}

function takeOffsets(before: Uint32Array, rows: RowChoice): Uint32Array {
  const offsets = new Uint32Array(countRows(rows) + 1)
  eachRow(rows, (row, at) => {
    offsets[at + 1] = offsets[at]! + before[row + 1]! - before[row]!
  })
  return offsets
}
