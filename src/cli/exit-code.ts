import { type ErrorKind, isExportError } from '../core/index.ts'

export const DONE = 0
export const FAILED = 1
export const USAGE = 2

/** Signals that end a command in an orderly way, with the exit code that says so: 128 and the signal's number. */
export const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143 } as const
export type Signal = keyof typeof SIGNAL_CODES

/** What the shell gets for an error of this kind. `signal`: the one that came, if any. */
export function exitCode(kind: ErrorKind, signal: Signal | null): number {
  switch (kind) {
    case 'config':
      return USAGE
    case 'credentials':
      return 3
    case 'quota':
      return 4
    case 'locked':
      return 5
    case 'interrupted':
      return SIGNAL_CODES[signal ?? 'SIGINT']
    case 'transient':
    case 'refused':
    case 'cursor':
    case 'data':
    case 'storage':
    case 'target':
    case 'damaged':
      return FAILED
  }
}

/** The same for whatever was thrown: what is no ExportError is a defect. */
export function exitCodeOf(error: unknown, signal: Signal | null): number {
  return isExportError(error) ? exitCode(error.kind, signal) : FAILED
}
