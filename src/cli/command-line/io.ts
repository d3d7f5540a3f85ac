import type { Environment } from '../../config/index.ts'
import type { RunObserver } from '../../run/index.ts'
import type { LogSettings } from '../log/log.ts'
import type { Output } from '../terminal/output.ts'
import type { Screen } from '../terminal/screen.ts'
import type { Signals } from '../terminal/signals.ts'

/** What a process has to do with the world outside. */
export type World = {
  readonly env: Environment
  readonly cwd: string
  /** How spillway was called. */
  readonly program: string
  readonly stdout: Output
  readonly screen: Screen
  readonly signals: Signals
}

/** Everything that a command has to do with the world outside, besides its arguments. */
export type Io = World & {
  readonly logging: LogSettings
  readonly log: RunObserver['log']
  /** The same for machines alone. */
  readonly record: RunObserver['log']
  /** The id of what this process does, as on every line of its log. */
  readonly run: string
  /** Tells on stderr what went wrong. */
  reportError(error: unknown): void
}
