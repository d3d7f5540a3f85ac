import { closest, distance } from 'fastest-levenshtein'
import yargs, { type Argv } from 'yargs'
import type { ExportError } from '../core/index.ts'
import { version } from '../package/index.ts'
import {
  COMMON,
  CommandCall,
  type CommonArgs,
  MARK,
  type Perform,
  unmarked,
  wrongUsage,
} from './command-line/command.ts'
import { COMMANDS } from './commands/index.ts'
import { folded } from './terminal/screen.ts'

const PURPOSE =
  'Exports leaked-credential search results into Parquet or CSV: complete, once, masked, resumable.'

const EXIT_CODES = `Exit codes:
  0              all done
  1              something failed; run again
  2              usage or configuration
  3              credentials refused
  4              stopped at the budget or quota (resumable)
  5              another run holds the pipeline
  129, 130, 143  interrupted (resumable)`

/**
 * Parses a command line and performs its command; `--help` and `--version` are handled here.
 * @throws ExportError 'config' when the command line is wrong; and as the command does
 */
export async function parseCommandLine(
  words: readonly string[],
  columns: number,
  perform: Perform,
): Promise<void> {
  const [word = ''] = words
  if (/^[^-]/.test(word) && word !== 'completion' && !Object.hasOwn(COMMANDS, word))
    throw unknownCommand(unmarked(word))
  await loadForCompletion(words)
  const parser = parserOf(words, columns)
  try {
    await parser.parseAsync()
  } catch (error) {
    if (error instanceof CommandCall) return perform(error.args, error.work)
    // When options are loaded late, yargs throws some errors past `fail`.
    const message = error instanceof UsageFault || isYargsError(error) ? error.message : null
    const flags = error instanceof UsageFault ? error.flags : []
    throw message === null ? error : usageError(message, words, flags)
  }
}

/**
 * The flags for words and letters that people try: `help`, `-h`, `version`, `-v`, `help run`. What follows `--` is no
 * flag, whatever it begins with; yargs would not give it to the command, so it is marked instead.
 */
export function asFlags(words: readonly string[]): readonly string[] {
  // The shell completes it, too.
  const end = words[0]?.startsWith('--get-yargs-completions') ? -1 : words.indexOf('--')
  const [word, ...rest] = end < 0 ? words : words.slice(0, end)
  const plain =
    end < 0 ? [] : words.slice(end + 1).map((each) => (each.startsWith('-') ? `${MARK}${each}` : each))
  if (word === 'help') return [...rest, '--help', ...plain]
  if (words.length === 1 && (word === 'version' || word === '-v')) return ['--version']
  return [...(word === undefined ? [] : [word]), ...rest]
    .map((each) => (each === '-h' ? '--help' : each))
    .concat(plain)
}

/** The commands in groups. yargs lists them in one run. */
export function overview(columns: number): string {
  const all = Object.values(COMMANDS)
  const width = Math.max(...all.map(({ usage }) => usage.length))
  const rows = (wanted: string): readonly string[] =>
    all
      .filter(({ group }) => group === wanted)
      .map(({ usage, describe }) => {
        const text = folded(describe, widthOf(columns) - width - 4)
        return `  ${usage.padEnd(width)}  ${text.replaceAll('\n', `\n${' '.repeat(width + 4)}`)}`
      })
  const groups = [...new Set(all.map(({ group }) => group))]
  const more = folded(
    '`spillway <command> --help` explains a command; `spillway completion` completes commands in the shell.',
    widthOf(columns),
  )
  return [
    'spillway <command>',
    folded(PURPOSE, widthOf(columns)),
    ...groups.map((group) => `${group}:\n${rows(group).join('\n')}`),
    more,
    EXIT_CODES,
  ].join('\n\n')
}

/** An error of yargs about the command line. */
class UsageFault extends Error {
  /** Those of the command. */
  readonly flags: readonly string[]

  constructor(message: string, flags: readonly string[]) {
    super(message)
    this.flags = flags
  }
}

function isYargsError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'YError'
}

function parserOf(words: readonly string[], columns: number): Argv<CommonArgs> {
  const parser: Argv<CommonArgs> = yargs([...words])
    .scriptName('spillway')
    .usage(`$0 <command>\n\n${PURPOSE}`)
    .options(COMMON)
    .group(['log-format', 'log-level', 'help', 'version'], 'Common:')
    .version(version)
    .help('help', 'Show help')
    .detectLocale(false)
    .wrap(widthOf(columns))
    .parserConfiguration({
      'boolean-negation': false,
      'dot-notation': false,
      'greedy-arrays': false,
      'parse-numbers': true,
      'parse-positional-numbers': false,
    })
    .strict()
    .demandCommand(1, 'No command is given')
    .epilogue(EXIT_CODES)
    .exitProcess(false)
    .check(({ _: [, stray] }) => {
      if (stray === undefined) return true
      throw new Error(`Unknown argument: ${stray}; a file may be written ./${stray}`)
    })
    .fail((message, error) => {
      const { key } = (parser as unknown as CommandOptions).getOptions()
      throw message ? new UsageFault(message, Object.keys(key)) : error
    })
  // Descriptions say what is allowed, and the default in brackets.
  ;(parser as unknown as UsageSettings).usageConfiguration({ 'hide-types': true })
  for (const { add } of Object.values(COMMANDS)) add(parser, widthOf(columns))
  return parser.completion('completion', 'Print a script that completes commands and flags in the shell')
}

/** Of yargs; its types lack them. */
type CommandOptions = { getOptions(): { readonly key: Readonly<Record<string, unknown>> } }
type UsageSettings = { usageConfiguration(settings: { readonly 'hide-types': boolean }): void }

/** Longer lines are hard to read, and shorter ones hold no flag with its description. */
function widthOf(columns: number): number {
  return Math.max(40, Math.min(110, columns))
}

/** Loads the command of a command line that yargs completes: it does not wait for options. */
async function loadForCompletion(words: readonly string[]): Promise<void> {
  if (!words.some((word) => /^--get-yargs-completions(?:=|$)/.test(word))) return
  const name = words.find((word) => Object.hasOwn(COMMANDS, word))
  if (name !== undefined) await COMMANDS[name]!.load()
}

function usageError(message: string, words: readonly string[], flags: readonly string[]): ExportError {
  // Whoever is to be forgotten is not repeated.
  if (words[0] === 'forget' && message.startsWith('Unknown argument'))
    return wrongUsage(
      'Unknown argument, which is not repeated here: forget reads identities from stdin, or from the file of --identities',
      'See `spillway forget --help`.',
    )
  const [word = ''] = words
  const isCommand = Object.hasOwn(COMMANDS, word)
  const next = `See \`${isCommand ? `spillway ${word} --help` : 'spillway --help'}\`.`
  const text = unmarked(message.trim())
  if (text.startsWith('Not enough non-option arguments'))
    return wrongUsage(`${word}: an argument is missing`, next)
  const [, bare] = /^Not enough arguments following: (.*)$/.exec(text) ?? []
  if (bare !== undefined) return wrongUsage(`--${bare} needs a value`, next)
  const [, missing] = /^Missing required arguments?: (.*)$/.exec(text) ?? []
  if (missing !== undefined) return wrongUsage(`${word} needs --${missing.replaceAll(', ', ' and --')}`, next)
  const what = withoutDoubles(text)
  const [, unknown] = /^Unknown argument: (.*)$/.exec(what) ?? []
  const meant =
    unknown !== undefined && words.includes(`--${unknown}`) ? closest(unknown, ['', ...flags]) : ''
  const isNear = meant !== '' && distance(unknown!, meant) <= MAX_SLIPS
  return wrongUsage(what, isNear ? `Did you mean --${meant}? ${next}` : next)
}

function unknownCommand(word: string): ExportError {
  const meant = closest(word, Object.keys(COMMANDS))
  const hint = distance(word, meant) <= MAX_SLIPS ? `Did you mean ${meant}? ` : ''
  return wrongUsage(`Unknown command: ${word}`, `${hint}See \`spillway --help\`.`)
}

/** Letters of a word that may be wrong. */
const MAX_SLIPS = 2

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
