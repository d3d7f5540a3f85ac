import type { InferredOptionTypes } from 'yargs'
import type { Pipeline } from '../../core/index.ts'
import {
  type ChangeOptions,
  DataSet,
  type PartitionFilter,
  requireFit,
  type Use,
  WritableDataSet,
} from '../../data-set/index.ts'
import {
  checkRequirements,
  learnSecrets,
  type Overrides,
  readMaskKey,
  readPipeline,
  readPlace,
} from '../../pipeline/index.ts'
import { changeOptions } from '../../run-options.ts'
import { untilStopped } from '../terminal/signals.ts'
import { count } from '../terminal/text.ts'
import {
  type Command,
  command,
  type Definition,
  type Flags,
  flag,
  grouped,
  HOW_IT_RUNS,
  type Io,
  limitValue,
  type None,
  numberValue,
  stringValue,
  stringValues,
  WHAT_IS_SHOWN,
} from './command.ts'

const GROUP = 'Overrides of the file:'

const OUTPUT = { ...stringValue('Folder of the data set'), group: GROUP } as const

export const ALLOW_PLAINTEXT = flag('Consent to transform.secret: plaintext for this run')

export const RUN_OVERRIDES = {
  ...grouped(GROUP, {
    from: stringValue('Begin of the range, inclusive: 2024-01-01'),
    until: stringValue('End of the range, exclusive, or now'),
    domain: stringValues(
      'Only this domain of the file, or what to request where the file names no query; repeatable',
    ),
    output: OUTPUT,
    format: stringValue('parquet or csv'),
    'max-requests': limitValue('Requests that this run may send, or none: no budget'),
    concurrency: numberValue('Chains at a time: queries, or parts of their range'),
  }),
  ...grouped(HOW_IT_RUNS, { 'allow-plaintext': ALLOW_PLAINTEXT }),
} as const

export const FILE = { type: 'string', demandOption: true, describe: 'Pipeline file' } as const
export const FILES = { ...FILE, array: true, describe: 'Pipeline files' } as const
const DATA_SET = { ...FILE, describe: 'Pipeline file, or the path of a data set' } as const

export type OverrideFlags = Omit<Overrides, 'domains'> & { readonly domain?: readonly string[] | undefined }

/** Reads a pipeline file; flags override it. @throws ExportError `config` */
export async function pipelineFrom(
  file: string,
  flags: OverrideFlags,
  { env, cwd }: Io,
  sendsNothing = false,
): Promise<Pipeline> {
  await learnSecrets(env)
  const pipeline = await readPipeline(file, { env, cwd, sendsNothing, overrides: overridesFrom(flags) })
  await learnSecrets(env, pipeline)
  return pipeline
}

/** A command that looks after a data set. With an `--output` of its own it looks where the file says. */
export function dataSetCommand<
  const Of extends Use,
  const Own extends Flags = None,
  const Positionals extends Flags = None,
>(
  use: Of,
  { positionals, flags, run, ...rest }: Definition<Own, Positionals, [dataSet: Opened<Of>]>,
): Command {
  return command({
    ...rest,
    use,
    positionals: { pipeline: DATA_SET, ...positionals },
    flags: { output: OUTPUT, ...flags },
    async run(args, io) {
      const { pipeline, output } = args as { readonly pipeline: string; readonly output?: string }
      const where = flags?.output === undefined ? output : undefined
      const dataSet = await openedDataSet(pipeline, where, io, use)
      const differences = dataSet.differences.join('; ')
      if (differences !== '')
        io.log('warn', `the file and the data set differ, and the data set decides: ${differences}`)
      return (await run(args as never, io, dataSet)) ?? 0
    },
  })
}

/** Only who says that it changes a data set gets one that can be written to. */
type Opened<Of extends Use> = Of extends 'change' ? WritableDataSet : DataSet

/** @throws ExportError `config` */
export async function openedDataSet<Of extends Use>(
  given: string,
  output: string | undefined,
  { env, cwd }: Io,
  use: Of,
): Promise<Opened<Of>> {
  await learnSecrets(env)
  const place = await readPlace(given, { env, cwd, overrides: { output } })
  await learnSecrets(env, place.pipeline)
  const maskKey = await readMaskKey(place.pipeline, env).catch(() => null)
  const known = { ...place, maskKey }
  const opened = use === 'change' ? WritableDataSet.open(known) : DataSet.open(known, use)
  return opened as Promise<Opened<Of>>
}

/** Work that changes a data set, until a signal comes. */
export function changing<T>(io: Io, work: (options: ChangeOptions) => Promise<T>): Promise<T> {
  return untilStopped(io, ({ stop }) => {
    // A folder may be named after an identity.
    const onShard = (number: number, of: number): void =>
      io.screen.isAt(`shard ${count(number)} of ${count(of)}`)
    return work(changeOptions({ env: io.env, stop, onLog: io.log, onShard })).finally(() => io.screen.clear())
  })
}

/** Checks what a run needs besides the pipeline file. @throws ExportError `config` */
export async function requireToRun(
  pipeline: Pipeline,
  { allowPlaintext }: { readonly allowPlaintext: boolean },
  { env }: Io,
  sendsNothing = false,
): Promise<void> {
  await checkRequirements(pipeline, { env, allowPlaintext, sendsNothing }).catch(async (error: unknown) => {
    // A key would not help a file that does not fit the data set.
    await requireFit(pipeline)
    throw error
  })
}

export function overridesFrom(flags: OverrideFlags): Overrides {
  const { from, until, domain: domains, output, format, maxRequests, concurrency } = flags
  return { from, until, domains, output, format, maxRequests, concurrency }
}

const STATES = ['failed', 'partial', 'pending', 'done', 'pruned'] as const

export const CHOICE = grouped(WHAT_IS_SHOWN, {
  all: flag('A line for each partition instead of each query', { isOfOneFile: true }),
  state: {
    choices: STATES,
    array: true,
    requiresArg: true,
    describe: `Only partitions in this state: ${STATES.join(', ')}; repeatable`,
    isOfOneFile: true,
  },
  query: stringValues("Only these queries, for example 'domain.*.com' or acme.com; repeatable", {
    isOfOneFile: true,
  }),
} as const)

/** @returns a filter; null: all partitions */
export async function wantedPartitions({
  state,
  query,
}: Pick<InferredOptionTypes<typeof CHOICE>, 'state' | 'query'>): Promise<PartitionFilter | null> {
  if (state === undefined && query === undefined) return null
  const isNamed = query === undefined ? () => true : await namesMatching(query)
  return (name, where) => (state === undefined || state.includes(where)) && isNamed(name)
}

/** A glob matches the whole name of a query (`domain.acme.com`), or its part after the type. */
async function namesMatching(globs: readonly string[]): Promise<(name: string) => boolean> {
  const { default: picomatch } = await import('picomatch')
  const matches = picomatch([...globs], { dot: true })
  return (name) => matches(name) || matches(name.slice(name.indexOf('.') + 1))
}
