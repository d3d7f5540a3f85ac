import { afterEach, expect, test, vi } from 'vitest'
import { random } from '../support/random.ts'
import { isEqual } from './agreement.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'
import { randomPage } from './random-page.ts'

/** The types of Node.js lack it. */
declare const WebAssembly: { readonly CompileError: new () => Error }

afterEach(() => {
  vi.unstubAllGlobals()
})

test.each([
  ['a compiler', undefined],
  ['SIMD', withModule(WebAssembly.CompileError)],
  ['memory', withModule(RangeError)],
])('without %s pages are read all the same', (_, stub) => {
  vi.stubGlobal('WebAssembly', stub)
  const readers = readersOf(decodeSettings())
  for (let seed = 1; seed <= 20; seed++)
    isEqual(readers, randomPage(random(seed), (seed % 3) / 4), pageContext())
  expect(isEqual(readers, randomPage(random(1), 0), pageContext())).toBe(true)
})

function withModule(error: new () => Error): object {
  class Module {
    constructor() {
      throw new error()
    }
  }
  return { Module, CompileError: WebAssembly.CompileError }
}
