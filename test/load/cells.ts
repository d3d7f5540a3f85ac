import { int64 } from '../../src/core/index.ts'
import type { RecordBatch, TextVector, Vector } from '../../src/rows/index.ts'

export type Cell = null | number | bigint | boolean | string | readonly (string | null)[]

export function cellsOf({ rows, groups, columns }: RecordBatch): Cell[][] {
  return Array.from({ length: rows }, (_, row) =>
    columns.map(({ group, values }) => {
      if (group === null) return cellAt(values, row)
      const { indices } = groups[group]!
      return cellAt(values, indices === null ? 0 : indices[row]!)
    }),
  )
}

function cellAt(vector: Vector, at: number): Cell {
  if (vector.valid !== null && vector.valid[at] === 0) return null
  switch (vector.kind) {
    case 'number':
    case 'int64':
      return int64(vector.values[at]!)
    case 'boolean':
      return vector.values[at] === 1
    case 'text':
      return textAt(vector, at)
    case 'list': {
      const { offsets, items } = vector
      const length = offsets[at + 1]! - offsets[at]!
      return Array.from({ length }, (_, item) => {
        const index = offsets[at]! + item
        return items.valid !== null && items.valid[index] === 0 ? null : textAt(items, index)
      })
    }
  }
}

function textAt({ offsets, bytes }: TextVector, at: number): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return buffer.toString('utf8', offsets[at], offsets[at + 1])
}
