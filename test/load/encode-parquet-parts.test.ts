import fc from 'fast-check'
import { snappyUncompress } from 'hyparquet'
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js'
import { describe, expect, it } from 'vitest'
import { ByteBuffer } from '../../src/load/encode/byte-buffer.ts'
import { snappyCompress } from '../../src/load/encode/parquet/compress.ts'
import { fitsDelta, writeDeltaBinaryPacked } from '../../src/load/encode/parquet/encodings.ts'
import { TextDictionary } from '../../src/rows/index.ts'

/** Bytes with runs and with repeats, near and far. */
const anyBytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .tuple(fc.uint8Array({ minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 9000 }))
        .map(([part, times]) => new Uint8Array(Buffer.alloc(part.length * times, part))),
    ),
    { maxLength: 8 },
  )
  .map((parts) => new Uint8Array(Buffer.concat(parts)))

describe('snappy', () => {
  const uncompressed = (bytes: Uint8Array, length: number): Uint8Array => {
    const output = new Uint8Array(length)
    snappyUncompress(bytes, output)
    return output
  }

  it('is decompressed by another library', () => {
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        expect(Buffer.compare(uncompressed(snappyCompress(bytes), bytes.length), bytes)).toBe(0)
      }),
    )
  })

  it('compresses repeats well and hardly enlarges noise', () => {
    const repeats = new Uint8Array(Buffer.alloc(100_000, 'ada.marsh@scatterholt.com,'))
    expect(snappyCompress(repeats).length).toBeLessThan(6000)
    const noise = Uint8Array.from({ length: 100_000 }, (_, i) => Math.imul(i, 0x9e3779b1) >>> 24)
    expect(snappyCompress(noise).length).toBeLessThan(100_100)
  })
})

describe('delta binary packing', () => {
  it('decodes to every number', () => {
    const near = fc.integer({ min: -(2 ** 51), max: 2 ** 51 })
    const values = fc.oneof(
      fc.array(near, { maxLength: 300 }),
      fc.tuple(near, fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 300 })).map(([start, steps]) => {
        let value = start
        return steps.map((step) => {
          value += step
          return value
        })
      }),
      fc.array(fc.constantFrom(-(2 ** 51), 2 ** 51, 0), { maxLength: 300 }),
    )
    fc.assert(
      fc.property(values, (values) => {
        const out = new ByteBuffer(8)
        writeDeltaBinaryPacked(out, Float64Array.from(values))
        const decoded = new BigInt64Array(values.length)
        const bytes = new Uint8Array(out.view())
        const reader = { view: new DataView(bytes.buffer), offset: 0 }
        deltaBinaryUnpack(reader, values.length, decoded)
        expect([...decoded].map(Number)).toEqual(values.map((value) => value + 0))
        expect(reader.offset).toBe(bytes.length)
      }),
    )
  })

  it('is not used if deltas would be rounded', () => {
    expect(fitsDelta(-(2 ** 51), 2 ** 51)).toBe(true)
    expect(fitsDelta(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)).toBe(false)
  })
})

it('the string dictionary is abandoned when many strings collide, before it becomes slow', () => {
  // The second word cancels the hash of the first, so that all hashes are equal.
  const words = Array.from({ length: 1000 }, (_, i) => {
    const mixed = Math.imul(0x811c9dc5 ^ 8 ^ i, 0x01000193)
    return [i, mixed ^ (mixed >>> 15)]
  })
  const bytes = new Uint8Array(Int32Array.from(words.flat()).buffer)
  const dictionary = new TextDictionary()
  const numbers = words.map((_, i) => dictionary.intern(bytes, i * 8, i * 8 + 8))
  expect(numbers.indexOf(-1)).toBe(256)
  expect(dictionary.count).toBe(256)
  expect(numbers.slice(0, 256)).toEqual(words.slice(0, 256).map((_, i) => i))
})
