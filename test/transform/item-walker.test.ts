import { afterEach, expect, test, vi } from 'vitest'
import { credentialPaths } from '../../src/transform/decoder.ts'
import { createDecoder } from '../../src/transform/index.ts'
import { random } from '../support/random.ts'
import { decodePlan, pageContext, rowsOf } from './plans.ts'
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
])('without %s pages take the plain path and give the same', (_, stub) => {
  const body = randomPage(random(1), 0)
  const expected = credentialPaths(decodePlan()).fast(body, pageContext())
  vi.stubGlobal('WebAssembly', stub)
  expect(credentialPaths(decodePlan()).fast(body, pageContext())).toBeNull()
  const page = createDecoder(decodePlan())(body, pageContext())
  expect({ ...page, recordBatch: rowsOf(page) }).toStrictEqual({
    ...expected,
    recordBatch: rowsOf(expected!),
  })
})

function withModule(error: new () => Error): object {
  class Module {
    constructor() {
      throw new error()
    }
  }
  return { Module, CompileError: WebAssembly.CompileError }
}
