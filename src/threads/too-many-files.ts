import { ExportError } from '../core/index.ts'

/** Scripts, and what they import when it is needed, are files as well. */
export function tooManyFiles(error: unknown): ExportError | null {
  if (!(error instanceof Error && 'code' in error && isOfFiles(error.code, error.message))) return null
  return new ExportError(
    'storage',
    'Too many files are open',
    'worker thread',
    'Raise the limit (ulimit -n) or lower extract.concurrency, then run again.',
  )
}

function isOfFiles(code: unknown, message: string): boolean {
  // A thread that can't even begin has one code for whatever the system refuses; the system's own stands in the message.
  return code === 'EMFILE' || (code === 'ERR_WORKER_INIT_FAILED' && /\bE[MN]FILE\b/.test(message))
}
