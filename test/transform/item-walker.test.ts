import { afterEach, expect, test, vi } from 'vitest'
import { random } from '../support/random.ts'
import { isEqual } from './agreement.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'
import { randomPage } from './random-page.ts'
import { type Walker, withoutModule, withWalkers } from './walkers.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

test.each([
  ['a compiler', undefined],
  ['SIMD', withoutModule('CompileError')],
  ['memory', withoutModule('RangeError')],
  ['memory for the response', withWalkers((walker) => ({ ...walker, open: () => 0 }))],
])('without %s pages are read all the same', (_, stub) => {
  vi.stubGlobal('WebAssembly', stub)
  const readers = readersOf(decodeSettings())
  for (let seed = 1; seed <= 20; seed++)
    isEqual(readers, randomPage(random(seed), (seed % 3) / 4), pageContext())
  expect(isEqual(readers, randomPage(random(1), 0), pageContext())).toBe(true)
})

test('memory that a large response takes is not kept, that of others is', () => {
  const walkers: Walker[] = []
  vi.stubGlobal(
    'WebAssembly',
    withWalkers((walker) => {
      walkers.push(walker)
      return walker
    }),
  )
  const { read } = readersOf(decodeSettings())
  const sizes = [10, 100_000, 8_000_000, 10, 60_000_000, 10, 8_000_000]
  const made = sizes.map((bytes) => {
    const page = Buffer.from(`{"items":[],"more":"${'x'.repeat(bytes)}"}`)
    expect(read(page, pageContext()).items).toBe(0)
    expect(walkers.at(-1)!.memory.buffer.byteLength).toBeGreaterThan(bytes)
    return walkers.length
  })
  expect(made).toEqual([1, 1, 1, 1, 1, 2, 2])
  expect(walkers[1]!.memory.buffer.byteLength).toBeLessThan(32 << 20)
})
