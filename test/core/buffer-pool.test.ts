import { expect, it } from 'vitest'
import { bufferPool } from '../../src/core/index.ts'

it('hands a buffer out again once it was given back, to one taker at a time', () => {
  const pool = bufferPool(2)
  const first = pool.take(1000)
  pool.give(first)
  expect(pool.take(1000)).toBe(first)
  expect(pool.take(1000)).not.toBe(first)
})

it('always gives as much room as was asked for', () => {
  const pool = bufferPool(2)
  pool.give(pool.take(100))
  expect(pool.take(5000).byteLength).toBeGreaterThanOrEqual(5000)
})

it('keeps the larger ones when it has too many, and none that was transferred or is huge', () => {
  const pool = bufferPool(1)
  const [small, large] = [pool.take(10), pool.take(1000)]
  pool.give(small)
  pool.give(large)
  expect(pool.take(1)).toBe(large)
  const gone = pool.take(10)
  structuredClone(gone, { transfer: [gone] })
  pool.give(gone)
  pool.give(new ArrayBuffer(64 << 20))
  expect(pool.take(1).byteLength).toBeLessThan(10)
})
