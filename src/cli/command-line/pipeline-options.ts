import type { Argv, InferredOptionTypes } from 'yargs'
import type { Overrides } from '../../config/index.ts'
import { type Pipeline, shellWord } from '../../core/index.ts'
import type { PartitionFilter } from '../../data-set/index.ts'
import { plainLine } from '../terminal/text.ts'
import {
  type CommonArgs,
  flag,
  HOW_IT_RUNS,
  type Io,
  limitValue,
  numberValue,
  stringValue,
  stringValues,
  WHAT_IS_SHOWN,
} from './command.ts'

const OVERRIDES = {
  from: stringValue('Begin of the range, inclusive: 2024-01-01'),
  until: stringValue('End of the range, exclusive, or now'),
  domain: stringValues(
    'Only this domain of the file, or what to request where the file names no query; repeatable',
  ),
  output: stringValue('Folder of the data set'),
  format: stringValue('parquet or csv'),
} as const

const LIMITS = {
  'max-requests': limitValue('Requests that this run may send, or none: no budget'),
  concurrency: numberValue('Chains at a time: queries, or parts of their range'),
} as const

const CONSENT = {
  'allow-plaintext': flag('Consent to transform.secret: plaintext for this run'),
} as const

const FILE = { type: 'string', demandOption: true, describe: 'Pipeline file' } as const

type PipelineArgs = CommonArgs & { readonly pipeline: string } & InferredOptionTypes<typeof OVERRIDES>
type RunPipelineArgs = PipelineArgs & InferredOptionTypes<typeof LIMITS & typeof CONSENT>

const GROUP = 'Overrides of the file:'

/** The pipeline file, and the flags that override it. */
export function pipelineOptions(yargs: Argv<CommonArgs>): Argv<PipelineArgs> {
  return yargs.positional('pipeline', FILE).options(OVERRIDES).group(Object.keys(OVERRIDES), GROUP)
}

/** The pipeline file and `--format`, for commands with an `--output` of their own. */
export function pipelineAndFormat(yargs: Argv<CommonArgs>) {
  const { format } = OVERRIDES
  return yargs.positional('pipeline', FILE).options({ format }).group('format', GROUP)
}

/** The pipeline file and `--output`, for a command with a `--format` of its own. */
export function summaryOptions(yargs: Argv<CommonArgs>) {
  const { output } = OVERRIDES
  return yargs.positional('pipeline', FILE).options({ output }).group('output', GROUP)
}

/** The pipeline file, `--format` and `--output`, for commands that do not depend on the queries. */
export function dataSetOptions(yargs: Argv<CommonArgs>) {
  const { output } = OVERRIDES
  return pipelineAndFormat(yargs).options({ output }).group('output', GROUP)
}

/** {@link pipelineOptions} with the limits of a run and the consent to plaintext. */
export function runPipelineOptions(yargs: Argv<CommonArgs>): Argv<RunPipelineArgs> {
  return pipelineOptions(yargs)
    .options(LIMITS)
    .group(Object.keys(LIMITS), GROUP)
    .options(CONSENT)
    .group(Object.keys(CONSENT), HOW_IT_RUNS)
}

/** Those flags as yargs gives them. */
export type OverrideFlags = Omit<Overrides, 'domains'> & { readonly domain?: readonly string[] | undefined }

/** Reads a pipeline file; flags override it. @throws ExportError `config` */
export async function pipelineFrom(
  file: string,
  flags: OverrideFlags,
  { env, cwd, logFile }: Io,
  sendsNothing = false,
): Promise<Pipeline> {
  // Help needs the options alone.
  const { learnSecrets, readPipeline } = await import('../../config/index.ts')
  await learnSecrets(env)
  const pipeline = await readPipeline(file, { env, cwd, sendsNothing, overrides: overridesFrom(flags) })
  await learnSecrets(env, pipeline)
  await logFile?.keepOutOf(pipeline)
  return pipeline
}

/**
 * The same for a command that sends no request: variables that only requests need may be unset.
 * @throws ExportError `config`
 */
export function pipelineToRead(file: string, flags: OverrideFlags, io: Io): Promise<Pipeline> {
  return pipelineFrom(file, flags, io, true)
}

/**
 * Reads a pipeline file and checks what a run of it needs, but for what only requests need: a warning names that.
 * @throws ExportError `config`
 */
export async function pipelineToPlan(file: string, flags: RunFlags, io: Io): Promise<Pipeline> {
  const pipeline = await pipelineToRead(file, flags, io)
  await requireToRun(pipeline, flags, io, true)
  const { missingForRequests } = await import('../../config/index.ts')
  const missing = missingForRequests(pipeline, io.env)
  if (missing.length > 0) io.log('warn', `not set, and a run needs it: ${missing.join(', ')}`)
  return pipeline
}

type RunFlags = OverrideFlags & { readonly allowPlaintext: boolean }

/** Checks what a run needs besides the pipeline file, and logs warnings. @throws ExportError `config` */
export async function requireToRun(
  pipeline: Pipeline,
  { allowPlaintext }: Pick<RunFlags, 'allowPlaintext'>,
  { env, log }: Io,
  sendsNothing = false,
): Promise<void> {
  const { warningsFor, checkRequirements } = await import('../../config/index.ts')
  await checkRequirements(pipeline, { env, allowPlaintext, sendsNothing })
  for (const { message, fields } of await warningsFor(pipeline, env)) log('warn', message, fields)
}

export function overridesFrom(flags: OverrideFlags): Overrides {
  const { from, until, domain: domains, output, format, maxRequests, concurrency } = flags
  return { from, until, domains, output, format, maxRequests, concurrency }
}

const STATES = ['failed', 'partial', 'pending', 'done', 'pruned'] as const

const CHOICE = {
  all: flag('A line for each partition instead of each query'),
  state: {
    choices: STATES,
    array: true,
    requiresArg: true,
    describe: `Only partitions in this state: ${STATES.join(', ')}; repeatable`,
  },
  query: stringValues("Only these queries, for example 'domain.*.com' or acme.com; repeatable"),
} as const

type ChoiceArgs = InferredOptionTypes<typeof CHOICE>

/** The options that choose the partitions of a table. */
export function choiceOptions<Args>(yargs: Argv<Args>): Argv<Args & ChoiceArgs> {
  return yargs.options(CHOICE).group(Object.keys(CHOICE), WHAT_IS_SHOWN) as Argv<Args & ChoiceArgs>
}

/** @returns a filter; null: all partitions */
export async function wantedPartitions({
  state,
  query,
}: Pick<ChoiceArgs, 'state' | 'query'>): Promise<PartitionFilter | null> {
  if (state === undefined && query === undefined) return null
  const isNamed = query === undefined ? () => true : await namesMatching(query)
  return (name, where) => (state === undefined || state.includes(where)) && isNamed(name)
}

/** A glob matches the whole name of a query (`domain.acme.com`), or its part after the type. */
async function namesMatching(globs: readonly string[]): Promise<(name: string) => boolean> {
  const { default: picomatch } = await import('picomatch')
  const matches = picomatch([...globs], { dot: true })
  const known = new Map<string, boolean>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    const isMatch = matches(name) || matches(name.slice(name.indexOf('.') + 1))
    known.set(name, isMatch)
    return isMatch
  }
}

/** The flags of this command that proposed commands need as well, each with a space before it. */
export type GivenFlags = {
  /** For `run`. */
  readonly run: string
  /** For commands that only read the data set. */
  readonly read: string
}

export const NO_FLAGS: GivenFlags = { run: '', read: '' }

const READ = ['from', 'until', 'domain', 'output', 'format'] as const

/** Without those that are for one run: `--fresh`, `--redo`, `--yes`. */
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
