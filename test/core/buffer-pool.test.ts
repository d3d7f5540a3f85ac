import { expect, it } from 'vitest'
import { bufferPool } from '../../src/core/index.ts'

it('keeps the larger buffers when it has too many, and no huge one', () => {
  const pool = bufferPool(1)
  const [small, large] = [pool.take(10), pool.take(1000)]
  pool.give(small)
  pool.give(large)
  expect(pool.take(1)).toBe(large)
  pool.give(pool.take(64 << 20))
  expect(pool.take(1).byteLength).toBeLessThan(10)
})

it('lends shared memory, except for huge responses, whose memory is freed at once', () => {
  const pool = bufferPool(1)
  expect(pool.take(1000)).toBeInstanceOf(SharedArrayBuffer)
  expect(pool.take(64 << 20)).toBeInstanceOf(ArrayBuffer)
})
