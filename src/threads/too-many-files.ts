import { ExportError } from '../core/index.ts'

/** Scripts, and what they import when it is needed, are files as well. */
export function tooManyFiles(error: unknown): ExportError | null {
  if (!(error instanceof Error && 'code' in error && error.code === 'EMFILE')) return null
  return new ExportError(
    'storage',
    'Too many files are open',
    'worker thread',
    'Raise the limit (ulimit -n) or lower extract.concurrency, then run again.',
  )
}
