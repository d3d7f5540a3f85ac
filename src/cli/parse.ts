import yargs, { type Argv } from 'yargs'
import { ExportError } from '../core/index.ts'
import { version } from '../package/index.ts'
import type { CommonArgs, Perform } from './command.ts'
import { COMMANDS } from './commands/index.ts'
import { LOG_FORMATS, LOG_LEVELS } from './log.ts'

const EXIT_CODES = `Exit codes:
  0 all done                        4 stopped at the budget or quota (resumable)
  1 something failed; run again     5 another run holds the pipeline
  2 usage or configuration          129, 130, 143 interrupted (resumable)
  3 credentials refused`

/**
 * Finds the command that a command line means and has it performed; `--help` and `--version` are answered here.
 * @throws ExportError 'config' when the command line is wrong; whatever the command throws
 */
export async function parseCommandLine(
  words: readonly string[],
  columns: number,
  perform: Perform,
): Promise<void> {
  await loadForCompletion(words)
  const parser: Argv<CommonArgs> = yargs([...words])
    .scriptName('spillway')
    .usage(
      '$0 <command>\n\nExports leaked-credential search results into Parquet or CSV: complete, once, masked, resumable.',
    )
    .options({
      'log-format': { choices: LOG_FORMATS, default: 'pretty' as const, describe: 'Log lines on stderr' },
      'log-level': { choices: LOG_LEVELS, default: 'info' as const, describe: 'Least level that is logged' },
      'log-file': {
        type: 'string',
        requiresArg: true,
        describe: 'Log lines are added to this file as well, as JSON',
      },
    })
    .group(['log-format', 'log-level', 'log-file', 'help', 'version'], 'Common:')
    .version(version)
    .help()
    .detectLocale(false)
    // yargs lays out the help of each command that it carries out. To break its lines is most of that work.
    .wrap(wantsHelp(words) ? Math.min(110, columns) : null)
    .parserConfiguration({
      'boolean-negation': false,
      'dot-notation': false,
      'greedy-arrays': false,
      'parse-numbers': true,
      'parse-positional-numbers': false,
    })
    .strict()
    .demandCommand(1, 'No command is given')
    .recommendCommands()
    .epilogue(EXIT_CODES)
    .exitProcess(false)
    .check(noNonsense)
    .fail((message, error) => {
      throw message ? usageError(message, words) : error
    })
  for (const add of Object.values(COMMANDS)) add(parser, perform)
  parser.completion('completion', 'Print a script that completes commands and flags in the shell', complete)
  try {
    await parser.parseAsync()
  } catch (error) {
    // Some of its complaints yargs throws past `fail` when options are loaded late.
    throw error instanceof Error && error.name === 'YError' ? usageError(error.message, words) : error
  }
}

function wantsHelp(words: readonly string[]): boolean {
  return words.length === 0 || words.some((word) => word.startsWith('--h'))
}

/** yargs asks for completions with the command line as it stands: which command is it of? */
async function loadForCompletion(words: readonly string[]): Promise<void> {
  if (!words.some((word) => /^--get-yargs-completions(?:=|$)/.test(word))) return
  const name = words.find((word) => Object.hasOwn(COMMANDS, word))
  if (name !== undefined) await COMMANDS[name]!.load()
}

/** Where no flag is begun after a command, a file is wanted, which the shell completes by itself. */
function complete(
  current: string,
  { _: words }: { readonly _: readonly unknown[] },
  byYargs: (onDone?: (error: Error | null, found: string[] | undefined) => void) => unknown,
  done: (found: string[]) => void,
): void {
  const isFile = !current.startsWith('-') && words.some((word) => Object.hasOwn(COMMANDS, String(word)))
  byYargs((_error, found = []) => done(found.filter((text) => !(isFile && text.startsWith('--')))))
}

/**
 * What yargs lets pass: an option given twice turns into a list, a number that is none into NaN, and what
 * stands behind `--` belongs to nobody.
 */
function noNonsense(args: Readonly<Record<string, unknown>> & { readonly _: readonly unknown[] }): true {
  const [, stray] = args._
  if (stray !== undefined) throw new Error(`Unknown argument: ${stray}; a file may be written ./${stray}`)
  for (const [name, value] of Object.entries(args)) {
    if (Number.isNaN(value)) throw new Error(`--${name}: expected a number`)
    if (Array.isArray(value) && !LISTS.has(name)) throw new Error(`--${name} is given more than once`)
  }
  return true
}

const LISTS: ReadonlySet<string> = new Set(['_', 'domain', 'redo', 'pipeline', 'id', 'state', 'query'])

function usageError(message: string, [word = '']: readonly string[]): ExportError {
  const help = Object.hasOwn(COMMANDS, word) ? `spillway ${word} --help` : 'spillway --help'
  const text = message.trim()
  // All that yargs says of a command that it does not know.
  if (text.startsWith('Did you mean')) {
    return new ExportError('config', `Unknown command: ${word}`, '', `${text} See \`${help}\`.`)
  }
  const what = text.startsWith('Not enough non-option arguments')
    ? `${word}: an argument is missing`
    : withoutDoubles(text)
  return new ExportError('config', what, '', `See \`${help}\`.`)
}

/** Of unknown flags, yargs names its own spelling in camelCase as well. */
function withoutDoubles(text: string): string {
  const unknown = /^Unknown arguments: (.*)$/.exec(text)?.[1]?.split(', ')
  if (unknown === undefined) return text
  const spellings = unknown.map((name) =>
    name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  )
  const names = unknown.filter((name, i) => name.includes('-') || spellings.indexOf(name) === i)
  return `Unknown argument${names.length === 1 ? '' : 's'}: ${names.join(', ')}`
}
