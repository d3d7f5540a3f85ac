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

it('keeps the larger ones when it has too many, and none that is huge', () => {
  const pool = bufferPool(1)
  const [small, large] = [pool.take(10), pool.take(1000)]
  pool.give(small)
  pool.give(large)
  expect(pool.take(1)).toBe(large)
  pool.give(pool.take(64 << 20))
  expect(pool.take(1).byteLength).toBeLessThan(10)
})

it('gives memory that threads share, but for huge answers, whose memory should go at once', () => {
  const pool = bufferPool(1)
  expect(pool.take(1000)).toBeInstanceOf(SharedArrayBuffer)
  expect(pool.take(64 << 20)).toBeInstanceOf(ArrayBuffer)
})
