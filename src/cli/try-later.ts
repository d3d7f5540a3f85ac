import { ExportError } from '../core/index.ts'

/** The advice for trouble that passes, where no export is at work that could go on. */
export function tryLater(error: ExportError): ExportError {
  if (error.kind !== 'transient' && error.kind !== 'quota') return error
  return new ExportError(error.kind, error.what, error.where, 'Try again later.', { cause: error })
}
