/** The types of Node.js lack it. */
declare const WebAssembly: {
  readonly Module: object
  readonly Instance: new (module: object) => { readonly exports: Walker }
  readonly CompileError: new () => Error
}

type Global = { readonly value: number }

/** What a test knows of the item walker. */
export type Walker = {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly status: Global
  readonly position: Global
  readonly sourceEnd: Global
  readonly walk: (start: number) => number
  readonly open: (bytes: number) => number
  readonly learn: (start: number, length: number, idLength: number) => number
}

const { Module, Instance: Made, CompileError } = WebAssembly

/** A WebAssembly whose walkers are what a test makes of them. */
export function withWalkers(of: (walker: Walker) => Walker): object {
  class Instance {
    readonly exports: Walker
    constructor(module: object) {
      this.exports = of(new Made(module).exports)
    }
  }
  return { Module, CompileError, Instance }
}

/** One that compiles nothing. */
export function withoutModule(error: 'CompileError' | 'RangeError'): object {
  class Module {
    constructor() {
      throw error === 'RangeError' ? new RangeError() : new CompileError()
    }
  }
  return { Module, CompileError }
}
