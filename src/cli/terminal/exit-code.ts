import { type ErrorKind, isExportError } from '../../core/index.ts'

export const DONE = 0
export const FAILED = 1
export const USAGE = 2

/** Kinds of errors that the same command meets again until somebody has corrected something. */
export const NEEDS_SOMEBODY: ReadonlySet<ErrorKind> = new Set(['config', 'credentials', 'refused', 'data'])

/** Signals that stop a command, and their exit codes: 128 and the number of the signal. */
export const SIGNAL_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
export type Signal = keyof typeof SIGNAL_CODES

const EXIT_CODES = {
  config: USAGE,
  credentials: 3,
  quota: 4,
  locked: 5,
  transient: FAILED,
  shape: FAILED,
  refused: FAILED,
  cursor: FAILED,
  data: FAILED,
  storage: FAILED,
  target: FAILED,
  damaged: FAILED,
} as const satisfies Record<Exclude<ErrorKind, 'interrupted'>, number>

export function exitCode(kind: ErrorKind, signal: Signal | null): number {
  return kind === 'interrupted' ? SIGNAL_CODES[signal ?? 'SIGINT'] : EXIT_CODES[kind]
}

/** Signals first, then what a person has to correct, failures, locks, and what the next run continues. */
export function gravest(codes: readonly number[]): number {
  return GRAVEST_FIRST.find((code) => codes.includes(code)) ?? DONE
}

const GRAVEST_FIRST: readonly number[] = [
  ...Object.values(SIGNAL_CODES),
  EXIT_CODES.credentials,
  USAGE,
  FAILED,
  EXIT_CODES.locked,
  EXIT_CODES.quota,
]

export function exitCodeOf(error: unknown, signal: Signal | null): number {
  return isExportError(error) ? exitCode(error.kind, signal) : FAILED
}
