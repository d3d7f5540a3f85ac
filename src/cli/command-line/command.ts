import type { ArgumentsCamelCase, Argv } from 'yargs'
import { ExportError, type Log } from '../../core/index.ts'
import type { Environment } from '../../pipeline/index.ts'
import type { LOG_FORMATS, LOG_LEVELS, LogSettings } from '../log/log.ts'
import type { Output } from '../terminal/output.ts'
import type { Screen } from '../terminal/screen.ts'
import type { Signals } from '../terminal/signals.ts'

/** Options that every command has. */
export type CommonArgs = {
  readonly 'log-format': (typeof LOG_FORMATS)[number]
  readonly 'log-level': (typeof LOG_LEVELS)[number]
}

/** What a command takes, and what it does. */
export type Command<Args> = {
  readonly options: (yargs: Argv<CommonArgs>) => Argv<Args>
  /** @returns the exit code */
  readonly run: (args: ArgumentsCamelCase<Args>, io: Io) => Promise<number>
}

/** Groups of a command's own options in help. */
export const WHAT_IS_SHOWN = 'What is shown:'
export const HOW_IT_RUNS = 'How it runs:'

/** The kinds of options, for yargs. */
export const flag = (describe: string) => ({ type: 'boolean', default: false, describe }) as const
export const stringValue = (describe: string) => ({ type: 'string', requiresArg: true, describe }) as const
export const numberValue = (describe: string) => ({ type: 'number', requiresArg: true, describe }) as const
/** A number, or `none`. */
export const limitValue = (describe: string) =>
  ({
    type: 'string',
    requiresArg: true,
    describe,
    // An option given twice is a list, which is rejected later.
    coerce: (text: string): number | 'none' =>
      text === 'none' || Array.isArray(text) ? (text as 'none') : Number(text),
  }) as const
export const stringValues = (describe: string) => ({ ...stringValue(describe), array: true }) as const

/** The error of a command line that makes no sense. */
export function wrongUsage(what: string, next: string, cause?: unknown): ExportError {
  return new ExportError({ kind: 'config', what, where: '', next, cause })
}

/** Types a command's arguments by its options. */
export function command<Args extends CommonArgs>(definition: Command<Args>): Command<Args> {
  return definition
}

/** Runs a command. @param work resolves to the exit code */
export type Perform = (
  args: ArgumentsCamelCase<CommonArgs>,
  work: (io: Io) => Promise<number>,
) => Promise<void>

/**
 * Thrown out of yargs by the command that is called. After that yargs would do more work, above all for the layout of
 * help, which takes longer than finding the command.
 */
export class CommandCall extends Error {
  readonly args: ArgumentsCamelCase<CommonArgs>
  readonly work: (io: Io) => Promise<number>

  constructor(args: ArgumentsCamelCase<CommonArgs>, work: (io: Io) => Promise<number>) {
    super('a command is called')
    this.args = args
    this.work = work
  }
}

/** The environment of the process. */
export type ProcessContext = {
  readonly env: Environment
  readonly cwd: string
  /** How spillway was called. */
  readonly program: string
  readonly stdout: Output
  readonly screen: Screen
  readonly signals: Signals
}

/** What a command is given besides its arguments. */
export type Io = ProcessContext & {
  readonly logging: LogSettings
  readonly log: Log
  /** The id of this call of the command, which is on every line of its log. */
  readonly run: string
  /** Prints an error on stderr. */
  reportError(error: unknown): void
}
