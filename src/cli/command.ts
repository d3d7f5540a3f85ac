import type { ArgumentsCamelCase, Argv } from 'yargs'
import type { Io } from './io.ts'
import type { LOG_FORMATS, LOG_LEVELS } from './log.ts'

/** Options that every command has. */
export type CommonArgs = {
  readonly 'log-format': (typeof LOG_FORMATS)[number]
  readonly 'log-level': (typeof LOG_LEVELS)[number]
}

/** Carries a command out, whose exit code is what `work` resolves to. */
export type Perform = (
  args: ArgumentsCamelCase<CommonArgs>,
  work: (io: Io) => Promise<number>,
) => Promise<void>

/** Adds one command to the command line. */
export type Command = (yargs: Argv<CommonArgs>, perform: Perform) => void

export type CommandDefinition<Args> = {
  /** With placeholders, as yargs writes them: `report <id..>`. */
  readonly usage: string
  /** null: not in the list of commands. */
  readonly describe: string | null
  readonly options: (yargs: Argv<CommonArgs>) => Argv<Args>
  /** @returns the exit code */
  readonly run: (args: ArgumentsCamelCase<Args>, io: Io) => Promise<number>
}

/** A command from its definition. */
export function command<Args extends CommonArgs>(definition: CommandDefinition<Args>): Command {
  const { usage, describe, options, run } = definition
  return (yargs, perform) => {
    const handler = (args: ArgumentsCamelCase<Args>) => perform(args, (io) => run(args, io))
    if (describe === null) yargs.command(usage, false, options, handler)
    else yargs.command(usage, describe, options, handler)
  }
}
