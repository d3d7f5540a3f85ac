import { type ErrorKind, type ExportError, isExportError } from '../../src/core/index.ts'

/** The ExportError, of some kinds alone if they are given, that a promise rejects with. */
export async function failure(promise: Promise<unknown>, ...kinds: ErrorKind[]): Promise<ExportError> {
  try {
    await promise
  } catch (error) {
    if (isExportError(error, ...kinds)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
