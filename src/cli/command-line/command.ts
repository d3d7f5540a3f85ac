import type { ArgumentsCamelCase, InferredOptionTypes, Options } from 'yargs'
import { ExportError, isExportError, type Log } from '../../core/index.ts'
import type { Use } from '../../data-set/index.ts'
import type { Environment } from '../../pipeline/index.ts'
import { LOG_FORMATS, LOG_LEVELS, type LogSettings } from '../log/log.ts'
import { exitCode, gravest } from '../terminal/exit-code.ts'
import type { Output } from '../terminal/output.ts'
import type { Screen } from '../terminal/screen.ts'
import type { Signals } from '../terminal/signals.ts'

export type Flag = Options & {
  /** Flags that it does not go with, by name; `name=value`: only with that value. */
  readonly excludes?: readonly string[]
  readonly needs?: readonly string[]
  /** It chooses lines of the table of one file. */
  readonly isOfOneFile?: true
  /** What its value has to be, where it became NaN. Default: a number. */
  readonly expected?: string
}
export type Flags = Readonly<Record<string, Flag>>
type Rules = Pick<Flag, 'excludes' | 'needs' | 'isOfOneFile'>

export const WHAT_IS_SHOWN = 'What is shown:'
export const HOW_IT_RUNS = 'How it runs:'

/** The kinds of flags. Descriptions say what is allowed, and the default in brackets. */
export const flag = (describe: string, rules: Rules = {}) =>
  ({ type: 'boolean', default: false, describe, ...rules }) as const
export const stringValue = (describe: string, rules: Rules = {}) =>
  ({ type: 'string', requiresArg: true, describe, ...rules }) as const
export const numberValue = (describe: string) => ({ type: 'number', requiresArg: true, describe }) as const
export const requiredValue = (describe: string) => ({ ...stringValue(describe), demandOption: true }) as const
export const choiceOf = <const Value extends string>(
  choices: readonly Value[],
  byDefault: NoInfer<Value>,
  describe: string,
) => ({ choices, default: byDefault, describe: `${describe} [${byDefault}]` }) as const
export const integerValue = (describe: string, byDefault: number, least: number, most = Infinity) =>
  ({
    ...numberValue(`${describe} [${byDefault}]`),
    default: byDefault,
    expected: `an integer from ${least} ${most === Infinity ? 'on' : `to ${most}`}`,
    coerce: (value: number): number =>
      Array.isArray(value) || (Number.isInteger(value) && value >= least && value <= most) ? value : NaN,
  }) as const
export const limitValue = (describe: string) =>
  ({
    type: 'string',
    requiresArg: true,
    describe,
    // A flag that is given twice is a list, which is rejected later.
    coerce: (text: string): number | 'none' =>
      text === 'none' || Array.isArray(text) ? (text as 'none') : Number(text),
  }) as const
/** `500ms`, `30s`, `1h`: milliseconds. */
export const durationValue = (describe: string) =>
  ({
    type: 'string',
    requiresArg: true,
    describe,
    expected: 'a duration such as 500ms, 30s or 1h',
    coerce: (text: string): number => {
      const [, number, unit = 'ms'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
      return Number(number) * { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit]!
    },
  }) as const
export const stringValues = (describe: string, rules: Rules = {}) =>
  ({ ...stringValue(describe, rules), array: true }) as const

export function grouped<const Group extends Flags>(title: string, flags: Group): Group {
  const all = Object.entries(flags).map(([name, each]) => [name, { ...each, group: title }])
  return Object.fromEntries(all) as Group
}

export const COMMON = {
  'log-format': choiceOf(LOG_FORMATS, 'pretty', 'Log lines on stderr: pretty or json'),
  'log-level': choiceOf(LOG_LEVELS, 'info', `Least level that is logged: ${LOG_LEVELS.join(', ')}`),
} as const

export type CommonArgs = InferredOptionTypes<typeof COMMON>

export type Definition<Own extends Flags, Positionals extends Flags, Rest extends readonly unknown[] = []> = {
  readonly positionals?: Positionals
  readonly flags?: Own
  readonly examples: readonly (readonly [command: string, meaning: string])[]
  readonly epilogue?: string
  /** Whether it takes several pipeline files and is called for each. */
  readonly eachFile?: boolean
  /** In place of calls of `run`, where several files are a table for people. */
  readonly table?: (files: readonly string[], output: string | undefined, io: Io) => Promise<number>
  /** What it does with a data set that is there. Default: it takes none, or a file of which a run could be made. */
  readonly use?: Use
  /** @returns the exit code; without one it is 0 */
  readonly run: (
    args: ArgumentsCamelCase<CommonArgs & InferredOptionTypes<Own> & InferredOptionTypes<Positionals>>,
    io: Io,
    ...rest: Rest
  ) => Promise<number> | Promise<void>
}

export type Command = Omit<Definition<Flags, Flags>, 'run'> & {
  readonly run: (args: ArgumentsCamelCase<CommonArgs>, io: Io) => Promise<number>
}

export type None = Record<never, Flag>

/** Types a command's arguments by its declarations. */
export function command<const Own extends Flags = None, const Positionals extends Flags = None>({
  run,
  ...declared
}: Definition<Own, Positionals>): Command {
  return { ...declared, run: async (args, io) => (await run(args as never, io)) ?? 0 }
}

/** Rejects what yargs accepts: an empty file name, a flag given twice (a list), NaN, a useless flag. */
export function checkFlags(args: Readonly<Record<string, unknown>>, flags: Flags): true {
  // As of a variable of a script that is not set.
  if ([args.pipeline].flat().includes('')) throw new Error('The name of the pipeline file is empty')
  for (const [name, each] of Object.entries<Flag>({ ...COMMON, ...flags })) {
    const { array = false, expected = 'a number' } = each
    const value = args[name]
    if (Number.isNaN(value)) throw new Error(`--${name}: expected ${expected}`)
    if (Array.isArray(value) && !array) throw new Error(`--${name} is given more than once`)
  }
  const isGiven = (name: string): boolean => {
    const [key = '', wanted] = name.split('=')
    const value = args[key]
    return wanted === undefined ? value !== undefined && value !== false : value === wanted
  }
  for (const [name, { excludes = [], needs = [], isOfOneFile = false }] of Object.entries(flags)) {
    if (!isGiven(name)) continue
    const other = excludes.find(isGiven)
    if (other !== undefined)
      throw new Error(`--${name} and --${other.replace('=', ' ')} do not go together: one would be ignored`)
    const missing = needs.find((need) => !isGiven(need))
    if (missing !== undefined) throw new Error(`--${name} goes with --${missing}`)
    if (isOfOneFile && Array.isArray(args.pipeline) && args.pipeline.length > 1 && args.json !== true)
      throw new Error(`--${name} goes with one pipeline file`)
  }
  return true
}

/** Before a word that begins with a dash and is no flag. No argument of a process has this character. */
export const MARK = '\0'

export function unmarked(text: string): string {
  return text.replaceAll(MARK, '')
}

export function unmarkedArgs<T extends object>(args: T): T {
  const plain = (value: unknown): unknown =>
    typeof value === 'string' ? unmarked(value) : Array.isArray(value) ? value.map(plain) : value
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, plain(value)])) as T
}

export function wrongUsage(what: string, next: string, cause?: unknown): ExportError {
  return new ExportError({ kind: 'config', what, where: '', next, cause })
}

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
  reportError(error: unknown): void
}

/** One that fails is reported, and does not stop the others. @returns the gravest exit code */
export async function forEachFile(
  files: readonly string[],
  io: Io,
  work: (file: string) => Promise<number>,
  onError: (file: string, error: ExportError) => unknown,
): Promise<number> {
  const codes: number[] = []
  for (const file of files) {
    try {
      codes.push(await work(file))
    } catch (error) {
      if (!isExportError(error)) throw error
      io.reportError(error)
      codes.push(exitCode(error.kind, io.signals.received))
      await onError(file, error)
    }
  }
  return gravest(codes)
}
