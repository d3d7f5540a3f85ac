import fc from 'fast-check'
import { expect, it } from 'vitest'
import { copyBytes } from '../../src/rows/index.ts'

const memory = fc.boolean().map((isShared) => (length: number) => {
  const buffer = isShared ? new SharedArrayBuffer(length) : new ArrayBuffer(length)
  return new Uint8Array(buffer)
})

it('bytes are copied to the given offset, and nothing else changes', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 600, size: 'max' }),
      memory,
      memory,
      fc.nat({ max: 9 }),
      fc.nat({ max: 9 }),
      (bytes, fromMemory, toMemory, before, after) => {
        const from = fromMemory(before + bytes.length).subarray(before)
        from.set(bytes)
        const to = toMemory(before + after + bytes.length).fill(7)
        copyBytes(from, to, after)
        const expected = Buffer.concat([Buffer.alloc(after, 7), bytes, Buffer.alloc(before, 7)])
        expect(Buffer.compare(to, expected)).toBe(0)
      },
    ),
    { numRuns: 500 },
  )
})

it.each([10, 1000])('%d bytes are not copied if the target is too small', (length) => {
  const to = new Uint8Array(length + 5)
  expect(() => copyBytes(new Uint8Array(length).fill(1), to, 6)).toThrow(RangeError)
  expect(to.every((byte) => byte === 0)).toBe(true)
})
