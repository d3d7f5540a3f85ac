import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeRecordBatch, encodeRecordBatch, type RecordBatch } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { anyRecordBatch } from './record-batches.ts'

describe('record batches', () => {
  it('are equal after encoding and decoding', () => {
    fc.assert(
      fc.property(anyRecordBatch, (recordBatch) => {
        const bytes = encodeRecordBatch(recordBatch)
        expect(bytes.byteLength % 8).toBe(0)
        expect(bytes.byteOffset).toBe(0)
        expect(bytes.buffer.byteLength).toBe(bytes.byteLength)
        expect(decodeRecordBatch(bytes)).toEqual(recordBatch)
      }),
      { numRuns: cases(500, 60) },
    )
  })

  it('are read at any offset that is a multiple of eight, and encode to the same bytes again', () => {
    fc.assert(
      fc.property(anyRecordBatch, fc.nat({ max: 9 }), (recordBatch, words) => {
        const bytes = encodeRecordBatch(recordBatch)
        const around = new Uint8Array(words * 8 + bytes.byteLength + 5).fill(0xff)
        around.set(bytes, words * 8)
        const decoded = decodeRecordBatch(around.subarray(words * 8, words * 8 + bytes.byteLength))
        expect(decoded).toEqual(recordBatch)
        expect(encodeRecordBatch(decoded)).toEqual(bytes)
      }),
    )
  })

  it('are views on their bytes, not copies', () => {
    const bytes = encodeRecordBatch(numbers(new Float64Array([1, 2, 3])))
    for (const column of decodeRecordBatch(bytes).columns) {
      const { values } = column.values as { values: Float64Array }
      expect(values.buffer).toBe(bytes.buffer)
      expect(values.byteOffset % 8).toBe(0)
    }
  })

  it('accept vectors that are views at odd offsets of larger buffers', () => {
    const odd = new Uint8Array(12)
    odd.set([9, 9, 9, 1, 0, 1])
    const recordBatch: RecordBatch = {
      rows: 3,
      groups: [],
      columns: [
        { name: 'b', group: null, values: { kind: 'boolean', values: odd.subarray(3, 6), valid: null } },
        {
          name: 'n',
          group: null,
          values: {
            kind: 'number',
            values: new Float64Array([0, 1, 2, 3]).subarray(1),
            valid: odd.subarray(3, 6),
          },
        },
      ],
    }
    expect(decodeRecordBatch(encodeRecordBatch(recordBatch))).toEqual({
      rows: 3,
      groups: [],
      columns: [
        {
          name: 'b',
          group: null,
          values: { kind: 'boolean', values: new Uint8Array([1, 0, 1]), valid: null },
        },
        {
          name: 'n',
          group: null,
          values: {
            kind: 'number',
            values: new Float64Array([1, 2, 3]),
            valid: new Uint8Array([1, 0, 1]),
          },
        },
      ],
    })
  })

  it('keep every bit of a double: NaN, both zeros, the infinities', () => {
    const values = new Float64Array([Number.NaN, -0, 0, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER])
    expect(decodeRecordBatch(encodeRecordBatch(numbers(values)))).toEqual(numbers(values))
  })

  it.each([
    ['nothing', new Uint8Array()],
    ['too little', new Uint8Array(7)],
    ['something else', new Uint8Array(64).fill(1)],
  ])('are not made of %s', (_, bytes) => {
    expect(() => decodeRecordBatch(bytes)).toThrow('not a record batch')
  })
})

function numbers(values: Float64Array): RecordBatch {
  return {
    rows: values.length,
    groups: [],
    columns: [{ name: 'n', group: null, values: { kind: 'number', values, valid: null } }],
  }
}
