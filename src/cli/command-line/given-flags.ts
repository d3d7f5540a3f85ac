import { plainLine } from '../terminal/plain-text.ts'
import { shellWord } from '../terminal/shown-path.ts'

/** Flags of a command line that the commands which are proposed need as well, each text with a blank before it. */
export type GivenFlags = {
  /** For `run`. */
  readonly run: string
  /** For what only reads the data set. */
  readonly read: string
}

export const NO_FLAGS: GivenFlags = { run: '', read: '' }

const READ = ['from', 'until', 'domain', 'output', 'format'] as const
/** Not among them: what is for once (`--fresh`, `--redo`, `--yes`). */
const RUN = [
  ...READ,
  'max-requests',
  'concurrency',
  'allow-plaintext',
  'fail-fast',
  'load',
  'no-progress',
  'log-format',
  'log-level',
  'log-file',
  'metrics-file',
] as const
const DEFAULTS: Readonly<Record<string, unknown>> = { 'log-format': 'pretty', 'log-level': 'info' }

/** @param args as yargs gives them */
export function givenFlags(args: Readonly<Record<string, unknown>>): GivenFlags {
  return { run: flagsText(RUN, args), read: flagsText(READ, args) }
}

function flagsText(names: readonly string[], args: Readonly<Record<string, unknown>>): string {
  return names
    .filter((name) => args[name] !== DEFAULTS[name])
    .flatMap((name) => flagTexts(name, args[name]))
    .join('')
}

function flagTexts(name: string, value: unknown): readonly string[] {
  if (value === undefined || value === false) return []
  if (value === true) return [` --${name}`]
  if (Array.isArray(value)) return value.flatMap((each) => flagTexts(name, each))
  return [` --${name} ${shellWord(plainLine(String(value)))}`]
}
