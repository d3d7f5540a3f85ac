import { closest, distance } from 'fastest-levenshtein'
import yargs, { type ArgumentsCamelCase, type Argv, type PositionalOptions } from 'yargs'
import type { ExportError } from '../core/index.ts'
import { version } from '../package/index.ts'
import {
  COMMON,
  type Command,
  type CommonArgs,
  checkFlags,
  HOW_IT_RUNS,
  MARK,
  unmarked,
  unmarkedArgs,
  WHAT_IS_SHOWN,
  wrongUsage,
} from './command-line/command.ts'
import { COMMANDS } from './commands/index.ts'
import { widthOf as lengthOf } from './terminal/screen.ts'

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

export type Call = {
  readonly args: ArgumentsCamelCase<CommonArgs>
  readonly command: Command
}

/** Handles `--help` and `--version`, too; null: nothing is left to do. @throws ExportError `config` */
export async function parseCommandLine(words: readonly string[], columns: number): Promise<Call | null> {
  const [word = ''] = words
  if (/^[^-]/.test(word) && word !== 'completion' && !Object.hasOwn(COMMANDS, word))
    throw unknownCommand(unmarked(word))
  // The options of others are not needed.
  const named = new Map<string, Command>()
  for (const each of words) if (Object.hasOwn(COMMANDS, each)) named.set(each, await COMMANDS[each]!.load())
  try {
    await parserOf(words, columns, named).parseAsync()
    return null
  } catch (error) {
    if (error instanceof Called) return error.call
    throw error instanceof UsageFault ? usageError(error.message, words, named.get(word)) : error
  }
}

/** Marks what yargs would not give to the command: a dash alone, and after `--` what begins with one. */
export function asFlags(words: readonly string[]): readonly string[] {
  // The shell completes it, too.
  const end = words[0]?.startsWith('--get-yargs-completions') ? -1 : words.indexOf('--')
  const [word, ...rest] = end < 0 ? words : words.slice(0, end)
  const plain =
    end < 0 ? [] : words.slice(end + 1).map((each) => (each.startsWith('-') ? `${MARK}${each}` : each))
  if (word === 'help') return [...rest, '--help', ...plain]
  if (words.length === 1 && (word === 'version' || word === '-v')) return ['--version']
  return [...(word === undefined ? [] : [word]), ...rest]
    .map((each) => (each === '-h' ? '--help' : each === '-' ? `${MARK}-` : each))
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

class UsageFault extends Error {}

/** Leaves yargs: after the call of a command it would lay out help, which takes longer than finding it. */
class Called extends Error {
  constructor(readonly call: Call) {
    super('a command is called')
  }
}

function parserOf(
  words: readonly string[],
  columns: number,
  named: ReadonlyMap<string, Command>,
): Argv<CommonArgs> {
  const width = widthOf(columns)
  const parser: Argv<CommonArgs> = yargs([...words])
    .scriptName('spillway')
    .usage(`$0 <command>\n\n${PURPOSE}`)
    .options(COMMON)
    .group(['log-format', 'log-level', 'help', 'version'], 'Common:')
    .version(version)
    .help('help', 'Show help')
    .detectLocale(false)
    .wrap(width)
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
      throw message ? new UsageFault(message) : error
    })
  ;(parser as unknown as UsageSettings).usageConfiguration({ 'hide-types': true })
  for (const [name, command] of named) {
    const { usage, describe } = COMMANDS[name]!
    parser.command(
      usage,
      describe,
      (own) => declared(command, own, width),
      (given) => {
        throw new Called({ args: unmarkedArgs(given), command })
      },
    )
  }
  // The shell completes their names. Where one is named already, the others are not needed.
  if (named.size === 0)
    for (const { usage, describe } of Object.values(COMMANDS)) parser.command(usage, describe)
  return parser.completion('completion', 'Print a script that completes commands and flags in the shell')
}

/** Of yargs; its types lack it. */
type UsageSettings = { usageConfiguration(settings: { readonly 'hide-types': boolean }): void }

/** Longer lines are hard to read, and shorter ones hold no flag with its description. */
function widthOf(columns: number): number {
  return Math.max(40, Math.min(110, columns))
}

/** Blanks and a word. What is in backticks or quotes, such as a command, is one word. */
const WORDS = / *((?:`[^`]*`|"[^"]*"|[^ ])+)/g

function folded(text: string, columns: number): string {
  const lines: string[] = ['']
  for (const [blanksAndWord, word] of text.matchAll(WORDS)) {
    const last = lines.at(-1)!
    if (last === '' || lengthOf(last + blanksAndWord) <= columns)
      lines[lines.length - 1] = last + blanksAndWord
    else lines.push(word!)
  }
  return lines.join('\n')
}

const OWN_GROUPS = ['Positionals:', 'Options:', WHAT_IS_SHOWN, HOW_IT_RUNS]

function declared(
  { positionals = {}, flags = {}, examples, epilogue }: Command,
  yargs: Argv<CommonArgs>,
  width: number,
): Argv<CommonArgs> {
  // Help lists groups in the order in which they were named first.
  for (const group of OWN_GROUPS) yargs.group([], group)
  for (const [name, each] of Object.entries(positionals)) yargs.positional(name, each as PositionalOptions)
  yargs.options(flags)
  yargs.epilogue(examplesText(examples, width))
  if (epilogue !== undefined) yargs.epilogue(`\n${folded(epilogue, width)}`)
  return yargs.check((args) => checkFlags(args, flags))
}

/** Examples that can be copied: what each is for is a comment above it, and a long line ends in a backslash. */
function examplesText(examples: Command['examples'], width: number): string {
  const all = examples.map(([line, meaning]) => {
    // Room for the indent and the backslash.
    const command = folded(line.replaceAll('$0', 'spillway'), width - 6).replaceAll('\n', ' \\\n    ')
    return `  # ${folded(meaning, width - 4).replaceAll('\n', '\n  # ')}\n  ${command}`
  })
  return `Examples:\n${all.join('\n')}`
}

/** @param command the first word; undefined: it is none */
function usageError(message: string, words: readonly string[], command: Command | undefined): ExportError {
  const [word = ''] = words
  const source = IDENTITIES_FROM[word]
  // Who is to be forgotten or digested is not repeated.
  if (source !== undefined && message.startsWith('Unknown argument'))
    return wrongUsage(
      `Unknown argument, which is not repeated here: ${word} reads identities from ${source}`,
      `See \`spillway ${word} --help\`.`,
    )
  const next = `See \`spillway ${command === undefined ? '' : `${word} `}--help\`.`
  const text = unmarked(message.trim())
  if (text.startsWith('Not enough non-option arguments'))
    return wrongUsage(`${word}: an argument is missing`, next)
  const [, bare] = /^Not enough arguments following: (.*)$/.exec(text) ?? []
  if (bare !== undefined) return wrongUsage(`--${bare} needs a value`, next)
  const [, missing] = /^Missing required arguments?: (.*)$/.exec(text) ?? []
  if (missing !== undefined) return wrongUsage(`${word} needs --${missing.replaceAll(', ', ' and --')}`, next)
  const what = withoutDoubles(text)
  const [, unknown] = /^Unknown argument: (.*)$/.exec(what) ?? []
  const flags = ['help', 'version', ...Object.keys({ ...COMMON, ...command?.flags })]
  const meant =
    unknown !== undefined && words.includes(`--${unknown}`) ? closest(unknown, ['', ...flags]) : ''
  const isNear = meant !== '' && distance(unknown!, meant) <= MAX_SLIPS
  return wrongUsage(what, isNear ? `Did you mean --${meant}? ${next}` : next)
}

const IDENTITIES_FROM: Readonly<Record<string, string>> = {
  digest: 'stdin',
  forget: 'stdin, or from the file of --identities',
  match: 'the file of --directory',
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
