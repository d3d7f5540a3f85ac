import { createRequire } from 'node:module'
import { packageFile } from './package-file.ts'

export { encoderBuild } from './encoder-build.ts'
export { packageFile } from './package-file.ts'

/** Spillway's own version. */
export const version = (
  createRequire(import.meta.url)(packageFile('package.json')) as { readonly version: string }
).version
