import { type ErrorKind, isExportError } from '../../core/index.ts'

export const DONE = 0
export const FAILED = 1
export const USAGE = 2

/** Signals that end a command in an orderly way, with the exit code that says so: 128 and the signal's number. */
export const SIGNAL_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
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

/**
 * Of the exit codes of several pipelines the one that the shell gets: a signal before all; then what somebody has to
 * put right (credentials, configuration), what failed, what another run holds, and what the next run goes on with.
 */
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

/** What the shell gets for whatever was thrown: what is no ExportError is a defect. */
export function exitCodeOf(error: unknown, signal: Signal | null): number {
  return isExportError(error) ? exitCode(error.kind, signal) : FAILED
}
