import { expect } from 'vitest'
import { type ErrorKind, isExportError } from '../../src/core/index.ts'

/** Matches an ExportError of this kind about this path. */
export function anError(kind: ErrorKind, where?: string): unknown {
  return expect.toSatisfy(
    (error) => isExportError(error, kind) && (where === undefined || error.where === where),
    `an ExportError ${kind}${where === undefined ? '' : ` at ${where}`}`,
  )
}
