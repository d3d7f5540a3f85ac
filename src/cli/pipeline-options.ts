import type { Argv, InferredOptionTypes } from 'yargs'
import { learnSecrets, type Overrides, readPipeline } from '../config/index.ts'
import type { Pipeline } from '../core/index.ts'
import type { CommonArgs } from './command.ts'
import type { Io } from './io.ts'

const OVERRIDES = {
  from: {
    type: 'string',
    requiresArg: true,
    describe: 'Begin of the range (inclusive), for example 2024-01-01',
  },
  until: { type: 'string', requiresArg: true, describe: 'End of the range (exclusive), or now' },
  domain: {
    type: 'string',
    array: true,
    requiresArg: true,
    describe: 'Search for this domain instead of what the file asks for; repeatable',
  },
  output: { type: 'string', requiresArg: true, describe: 'Folder of the data set' },
  format: { type: 'string', requiresArg: true, describe: 'parquet or csv' },
} as const

const LIMITS = {
  'max-requests': { type: 'number', requiresArg: true, describe: 'Requests that this run may send' },
  concurrency: { type: 'number', requiresArg: true, describe: 'Partitions in flight' },
} as const

const FILE = { type: 'string', demandOption: true, describe: 'Pipeline file' } as const

export type PipelineArgs = CommonArgs & { readonly pipeline: string } & InferredOptionTypes<typeof OVERRIDES>
export type RunPipelineArgs = PipelineArgs & InferredOptionTypes<typeof LIMITS>

const GROUP = 'In place of what the file says:'

/** The pipeline file, and the flags that change what it says. */
export function pipelineOptions(yargs: Argv<CommonArgs>): Argv<PipelineArgs> {
  return yargs.positional('pipeline', FILE).options(OVERRIDES).group(Object.keys(OVERRIDES), GROUP)
}

/** And those that only a run has. */
export function runPipelineOptions(yargs: Argv<CommonArgs>): Argv<RunPipelineArgs> {
  return pipelineOptions(yargs).options(LIMITS).group(Object.keys(LIMITS), GROUP)
}

/** Those flags as they come; undefined: not given. */
export type OverrideFlags = {
  readonly from?: string | undefined
  readonly until?: string | undefined
  readonly domain?: readonly string[] | undefined
  readonly output?: string | undefined
  readonly format?: string | undefined
  readonly maxRequests?: number | undefined
  readonly concurrency?: number | undefined
}

/** Reads a pipeline file with the flags in place of what it says. @throws ExportError `config` */
export async function pipelineFrom(file: string, flags: OverrideFlags, { env, cwd }: Io): Promise<Pipeline> {
  await learnSecrets(env)
  const pipeline = await readPipeline(file, { env, cwd, overrides: overridesFrom(flags) })
  await learnSecrets(env, pipeline)
  return pipeline
}

function overridesFrom(flags: OverrideFlags): Overrides {
  const { from, until, domain, output, format, maxRequests, concurrency } = flags
  return {
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
    ...(domain === undefined ? {} : { domains: domain }),
    ...(output === undefined ? {} : { output }),
    ...(format === undefined ? {} : { format }),
    ...(maxRequests === undefined ? {} : { maxRequests }),
    ...(concurrency === undefined ? {} : { concurrency }),
  }
}
