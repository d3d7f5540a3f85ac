import { expect } from 'vitest'
import { type ErrorKind, type ExportError, isExportError } from '../../src/core/index.ts'

export function anError(kind: ErrorKind, where?: string): unknown {
  return expect.toSatisfy(
    (error) => isExportError(error, kind) && (where === undefined || error.where === where),
    `an ExportError ${kind}${where === undefined ? '' : ` at ${where}`}`,
  )
}

export async function refusal(work: Promise<unknown>): Promise<ExportError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!isExportError(error)) throw new Error('not refused', { cause: error })
  return error
}
