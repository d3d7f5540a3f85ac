import type { Int64 } from '../../src/core/index.ts'
import type {
  Column,
  ColumnSpec,
  ColumnType,
  Group,
  RecordBatch,
  TextVector,
  Vector,
} from '../../src/rows/index.ts'

export type CellValue = null | Int64 | boolean | string | readonly (string | null)[]
export type Row = Readonly<Record<string, CellValue>>

/** Specs from `name: type`, where a `?` after the type means that the column may be null. */
export function specs(columns: Readonly<Record<string, ColumnType | `${ColumnType}?`>>): ColumnSpec[] {
  return Object.entries(columns).map(([name, type]) => ({
    name,
    type: type.replace('?', '') as ColumnType,
    nullable: type.endsWith('?'),
    meaning: '',
  }))
}

/** A record batch of the rows; the columns named together in `groups` share a table of their distinct values. */
export function recordBatchOf(
  columns: readonly ColumnSpec[],
  rows: readonly Row[],
  groups: readonly (readonly string[])[] = [],
): RecordBatch {
  const tables = groups.map((names) => tableOf(rows, keyIn(names)))
  return {
    rows: rows.length,
    groups: tables.map(({ group }) => group),
    columns: columns.map(({ name, type }): Column => {
      const group = groups.findIndex((names) => names.includes(name))
      const entries = group < 0 ? rows : tables[group]!.entries
      const values = entries.map((row) => row[name] ?? null)
      return { name, group: group < 0 ? null : group, values: vectorOf(type, values) }
    }),
  }
}

/** The entries that rows have in common, by what tells them apart: of each the first row. */
export function tableOf<T>(rows: readonly T[], keyOf: (row: T) => unknown): { group: Group; entries: T[] } {
  const numbers = new Map<unknown, number>()
  const entries: T[] = []
  const indices = Uint32Array.from(rows, (row) => {
    const key = keyOf(row)
    if (!numbers.has(key)) numbers.set(key, entries.push(row) - 1)
    return numbers.get(key)!
  })
  return { group: { size: entries.length, indices: entries.length === 1 ? null : indices }, entries }
}

const keyIn = (names: readonly string[]) => (row: Row) =>
  JSON.stringify(
    names.map((name) => row[name] ?? null),
    (_, value) => (typeof value === 'bigint' ? `${value}n` : value),
  )

function vectorOf(type: ColumnType, values: readonly CellValue[]): Vector {
  const valid = validity(values)
  switch (type) {
    case 'int64':
    case 'timestamp':
      // As the decoder does it: doubles, unless one value is not exact as a double.
      return values.some((value) => typeof value === 'bigint')
        ? {
            kind: 'int64',
            values: BigInt64Array.from(values, (value) => BigInt((value as Int64 | null) ?? 0)),
            valid,
          }
        : { kind: 'number', values: Float64Array.from(values, (value) => Number(value ?? 0)), valid }
    case 'boolean':
      return { kind: 'boolean', values: Uint8Array.from(values, (value) => (value === true ? 1 : 0)), valid }
    case 'text':
      return textVector(values.map((value) => (value === null ? null : String(value))))
    case 'list': {
      const lists = values.map((value) => (Array.isArray(value) ? (value as (string | null)[]) : []))
      return { kind: 'list', offsets: offsetsOf(lists), items: textVector(lists.flat()), valid }
    }
  }
}

function textVector(texts: readonly (string | null)[]): TextVector {
  const encoded = texts.map((text) => Buffer.from(text ?? ''))
  const bytes = new Uint8Array(Buffer.concat(encoded))
  return { kind: 'text', offsets: offsetsOf(encoded), bytes, valid: validity(texts) }
}

function offsetsOf(parts: readonly { readonly length: number }[]): Uint32Array {
  const offsets = new Uint32Array(parts.length + 1)
  parts.forEach((part, i) => {
    offsets[i + 1] = offsets[i]! + part.length
  })
  return offsets
}

function validity(values: readonly unknown[]): Uint8Array | null {
  return values.includes(null) ? Uint8Array.from(values, (value) => (value === null ? 0 : 1)) : null
}
