import { afterEach, expect, test, vi } from 'vitest'
import { random } from '../support/random.ts'
import { isEqual } from './agreement.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'
import { randomPage } from './random-page.ts'

/** The types of Node.js lack it. */
declare const WebAssembly: {
  readonly Module: object
  readonly Instance: new (module: object) => { readonly exports: Walker }
  readonly CompileError: new () => Error
}

type Walker = { readonly memory: { readonly buffer: ArrayBuffer }; readonly open: (bytes: number) => number }

afterEach(() => {
  vi.unstubAllGlobals()
})

test.each([
  ['a compiler', undefined],
  ['SIMD', withModule(WebAssembly.CompileError)],
  ['memory', withModule(RangeError)],
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

function withWalkers(of: (walker: Walker) => Walker): object {
  const { Module, Instance: Made, CompileError } = WebAssembly
  class Instance {
    readonly exports: Walker
    constructor(module: object) {
      this.exports = of(new Made(module).exports)
    }
  }
  return { Module, CompileError, Instance }
}

function withModule(error: new () => Error): object {
  class Module {
    constructor() {
      throw new error()
    }
  }
  return { Module, CompileError: WebAssembly.CompileError }
}
