import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeRecordBatch, encodeRecordBatch, type RecordBatch } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { anyRecordBatch } from './record-batches.ts'

describe('record batches', () => {
  it('are read at any offset that is a multiple of eight, and encode to the same bytes again', () => {
    fc.assert(
      fc.property(anyRecordBatch, fc.nat({ max: 9 }), (recordBatch, words) => {
        const bytes = encodeRecordBatch(recordBatch)
        expect([bytes.byteOffset, bytes.byteLength % 8]).toEqual([0, 0])
        expect(bytes.buffer.byteLength).toBe(bytes.byteLength)
        const around = new Uint8Array(words * 8 + bytes.byteLength + 5).fill(0xff)
        around.set(bytes, words * 8)
        const decoded = decodeRecordBatch(around.subarray(words * 8, words * 8 + bytes.byteLength))
        expect(decoded).toEqual(recordBatch)
        expect(encodeRecordBatch(decoded)).toEqual(bytes)
      }),
      { numRuns: cases(500, 60) },
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
    const batch = (flags: Uint8Array, values: Float64Array): RecordBatch => ({
      rows: 3,
      groups: [],
      columns: [
        { name: 'b', group: null, values: { kind: 'boolean', values: flags, valid: null } },
        { name: 'n', group: null, values: { kind: 'number', values, valid: flags } },
      ],
    })
    const given = batch(odd.subarray(3, 6), Float64Array.of(0, 1, 2, 3).subarray(1))
    const same = batch(Uint8Array.of(1, 0, 1), Float64Array.of(1, 2, 3))
    expect(decodeRecordBatch(encodeRecordBatch(given))).toEqual(same)
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
