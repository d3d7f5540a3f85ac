import type { RunObserver } from '../run/index.ts'
import type { LogSettings } from './log.ts'
import type { World } from './run-command-line.ts'

/** Everything that a command has to do with the world outside, besides its arguments. */
export type Io = World & {
  readonly logging: LogSettings
  readonly log: RunObserver['log']
  /** Tells on stderr what went wrong. */
  reportError(error: unknown): void
}
