import { type ErrorKind, isExportError } from '../../core/index.ts'

export const DONE = 0
export const FAILED = 1
export const USAGE = 2

/** Kinds of errors that the same command meets again until somebody has corrected something. */
export const NEEDS_SOMEBODY: ReadonlySet<ErrorKind> = new Set(['config', 'credentials', 'refused', 'data'])

/** Signals that stop a command, and their exit codes: 128 and the number of the signal. */
export const SIGNAL_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
export type Signal = keyof typeof SIGNAL_CODES

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
    case 'shape':
    case 'refused':
    case 'cursor':
    case 'data':
    case 'storage':
    case 'target':
    case 'damaged':
      return FAILED
  }
}

/** Signals first, then what a person has to correct, failures, locks, and what the next run continues. */
export function gravest(codes: readonly number[]): number {
  const signal = codes.find((code) => SIGNALLED.has(code))
  return signal ?? GRAVEST_FIRST.find((code) => codes.includes(code)) ?? DONE
}

const SIGNALLED: ReadonlySet<number> = new Set(Object.values(SIGNAL_CODES))
const GRAVEST_FIRST: readonly number[] = [
  exitCode('credentials', null),
  USAGE,
  FAILED,
  exitCode('locked', null),
  exitCode('quota', null),
]

export function exitCodeOf(error: unknown, signal: Signal | null): number {
  return isExportError(error) ? exitCode(error.kind, signal) : FAILED
}
