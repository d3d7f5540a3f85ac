import fc from 'fast-check'
import type { Column, Group, RecordBatch, TextVector, Vector } from '../../src/rows/index.ts'

/** Any record batch: every kind of vector, grouped and not, with and without nulls, also with no rows at all. */
export const anyRecordBatch: fc.Arbitrary<RecordBatch> = fc
  .record({ rows: fc.nat({ max: 20 }), sizes: fc.array(fc.nat({ max: 5 }), { maxLength: 3 }) })
  .chain(({ rows, sizes }) =>
    fc.record({
      rows: fc.constant(rows),
      groups: fc.tuple(...sizes.map((size) => groupOf(rows, size))) as fc.Arbitrary<Group[]>,
      columns: fc.array(columnOf(rows, sizes), { maxLength: 6 }),
    }),
  )

function groupOf(rows: number, size: number): fc.Arbitrary<Group> {
  const indices = fc.uint32Array({ minLength: rows, maxLength: rows, max: Math.max(0, size - 1) })
  return fc.record({ size: fc.constant(size), indices: fc.option(indices) })
}

function columnOf(rows: number, sizes: readonly number[]): fc.Arbitrary<Column> {
  const group = fc.option(fc.nat({ max: Math.max(0, sizes.length - 1) }))
  return fc.tuple(fc.string(), group).chain(([name, wanted]) => {
    const own = sizes.length === 0 ? null : wanted
    const length = own === null ? rows : (sizes[own] ?? 0)
    return fc.record({ name: fc.constant(name), group: fc.constant(own), values: vectorOf(length) })
  })
}

function vectorOf(length: number): fc.Arbitrary<Vector> {
  const valid = fc.option(fc.uint8Array({ minLength: length, maxLength: length, max: 1 }))
  const numbers = fc.float64Array({ minLength: length, maxLength: length })
  const large = fc.bigInt64Array({ minLength: length, maxLength: length })
  const booleans = fc.uint8Array({ minLength: length, maxLength: length, max: 1 })
  return fc.oneof<fc.Arbitrary<Vector>[]>(
    fc.record({ kind: fc.constant('number' as const), values: numbers, valid }),
    fc.record({ kind: fc.constant('int64' as const), values: large, valid }),
    fc.record({ kind: fc.constant('boolean' as const), values: booleans, valid }),
    textOf(length),
    fc
      .record({ lengths: fc.array(fc.nat({ max: 3 }), { minLength: length, maxLength: length }), valid })
      .chain(({ lengths, valid: known }) => {
        const offsets = running(lengths)
        return textOf(offsets.at(-1) ?? 0).map((items) => ({
          kind: 'list' as const,
          offsets,
          items,
          valid: known,
        }))
      }),
  )
}

function textOf(length: number): fc.Arbitrary<TextVector> {
  const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 9 }), {
    minLength: length,
    maxLength: length,
  })
  const valid = fc.option(fc.uint8Array({ minLength: length, maxLength: length, max: 1 }))
  return fc.tuple(texts, valid).map(([values, known]) => {
    const bytes = values.map((value) => Buffer.from(value))
    return {
      kind: 'text' as const,
      offsets: running(bytes.map(({ length: size }) => size)),
      bytes: new Uint8Array(Buffer.concat(bytes)),
      valid: known,
    }
  })
}

function running(lengths: readonly number[]): Uint32Array {
  const offsets = new Uint32Array(lengths.length + 1)
  for (const [index, length] of lengths.entries()) offsets[index + 1] = (offsets[index] ?? 0) + length
  return offsets
}
