import { ExportError, type Pipeline, systemClock } from './core/index.ts'
import {
  describeDataSet,
  type ForgetResult,
  forgetPeople as forget,
  loadWarehouse as load,
  type PruneResult,
  pruneDataSet as prune,
  queryPipeline as query,
  readEvidence,
  type Signed,
  type StatusResult,
  signDataSet as sign,
  readStatus as statusOf,
  streamQuery as stream,
  summarizeDataSet as summarize,
  type Use,
  type Verification,
  verifyDataSet as verify,
} from './data-set/index.ts'
import { version } from './package/index.ts'
import {
  type Environment,
  type PipelineSettings,
  pruneBefore,
  type ReadOptions,
  readMaskKey,
  readSigningKey,
  readVerifyingKey,
  readPipeline as resolveFile,
  pipelineFrom as resolveSettings,
} from './pipeline/index.ts'
import {
  frozenCopy,
  type PlanResult,
  readPlan as planOf,
  type RunSummary,
  runPipeline as run,
} from './run/index.ts'
import { changeOptions, type RunSettings, runOptions } from './run-options.ts'
import {
  startSandbox as openSandbox,
  type Sandbox,
  SandboxOptionError,
  type SandboxOptions,
} from './sandbox/index.ts'
import { evidenceTar } from './summary/index.ts'

/** How a pipeline is read. Environment and working directory default to those of the process. */
export type ReadSettings = Partial<ReadOptions>

/**
 * Reads a pipeline file.
 * @throws ExportError 'config' that names every problem with file, line and column
 */
export function readPipeline(file: string, settings: ReadSettings = {}): Promise<Pipeline> {
  return resolveFile(file, readOptions(settings))
}

/**
 * A pipeline from an object with the keys of a pipeline file, or from the text of one. Relative paths in it start in
 * the working directory.
 * @throws ExportError 'config' that names every problem with its key, in a text also with line and column
 */
export function pipelineFrom(
  source: PipelineSettings | string,
  settings: ReadSettings = {},
): Promise<Pipeline> {
  return resolveSettings(source, readOptions(settings))
}

function readOptions({ env = process.env, cwd = process.cwd(), ...given }: ReadSettings): ReadOptions {
  return { env, cwd, ...given }
}

/**
 * Exports everything that the pipeline requests and earlier runs have not exported. If a run stops early (budget,
 * signal, rejected credentials, full disk), the summary has the reason, and the next run resumes there.
 * @throws ExportError when the run could not begin; nothing is changed then
 */
export async function runPipeline(pipeline: Pipeline, settings: RunSettings = {}): Promise<RunSummary> {
  // A copy, because the program may change it while the options are made.
  const own = frozenCopy(pipeline)
  return run(own, await runOptions(own, settings))
}

/** Plans a run with these settings; sends nothing. @throws ExportError when such a run could not begin */
export async function readPlan(pipeline: Pipeline, settings: RunSettings = {}): Promise<PlanResult> {
  return planOf(pipeline, await runOptions(pipeline, settings))
}

/** The pipeline as the data set describes itself: what is there decides. */
async function asDescribed(pipeline: Pipeline, use: Use = 'read'): Promise<Pipeline> {
  return (await describeDataSet({ pipeline, unknown: null }, use)).pipeline
}

/** Queries an export, or a DuckDB file into which it was loaded; the result is kept in memory. */
export const queryPipeline: typeof query = async (pipeline, ...rest) =>
  query(await asDescribed(pipeline), ...rest)

/** The same as a stream. */
export const streamQuery: typeof stream = async (pipeline, ...rest) =>
  stream(await asDescribed(pipeline), ...rest)

/** Loads the shards that the manifest lists into a database, each once. */
export const loadWarehouse: typeof load = async (pipeline, ...rest) =>
  load(await asDescribed(pipeline), ...rest)

/** Summarizes a data set, with what only its rows tell. */
export const summarizeDataSet: typeof summarize = async (pipeline, options) =>
  summarize(await asDescribed(pipeline), options)

export type StatusSettings = {
  /** Epoch milliseconds. Default: now. */
  readonly nowMs?: number
}

/** The status of a pipeline, also during a run. @throws ExportError `damaged` or `config` */
export async function readStatus(pipeline: Pipeline, settings: StatusSettings = {}): Promise<StatusResult> {
  const { nowMs = systemClock.now() } = settings
  return statusOf(await asDescribed(pipeline, 'status'), nowMs)
}

/**
 * Reads every shard again and compares it with its entry in the manifest.
 * @param settings.onShard called before each, with its path
 */
export async function verifyDataSet(
  pipeline: Pipeline,
  settings: { readonly onShard?: (path: string) => void } = {},
): Promise<Verification> {
  const { pipeline: described, planned } = await describeDataSet({ pipeline, unknown: null }, 'read')
  return verify(described, { ...settings, planned })
}

/** Environment and working directory, as in {@link ReadSettings}, and callbacks. */
export type ChangeSettings = {
  readonly env?: Environment
  readonly cwd?: string
  /** Ends the wait for a run. */
  readonly stop?: AbortSignal
  readonly onWarning?: (message: string) => void
}

/**
 * Signs the manifest, and with it the digest of every shard; reads none of them, as `verifyDataSet` does.
 * @param keyFile of the private Ed25519 key, PEM; SPILLWAY_SIGNING_PASSPHRASE opens an encrypted one
 * @throws ExportError `config` when there is no such key or nothing is exported, `damaged` when the data set differs
 *   from its manifest, `locked` during a run
 */
export async function signDataSet(
  pipeline: Pipeline,
  keyFile: string,
  settings: ChangeSettings = {},
): Promise<Signed> {
  const options = readOptions(settings)
  return sign(
    await asDescribed(pipeline, 'status'),
    await readSigningKey(keyFile, options),
    changing(settings),
  )
}

export type EvidenceSettings = Pick<ChangeSettings, 'env' | 'cwd'> & {
  /** File of the public Ed25519 key, PEM. It is packed too, and the signature has to fit it. */
  readonly keyFile?: string
}

/**
 * The evidence that an export is complete and unchanged, as the bytes of a tar archive; never rows.
 * @throws ExportError `config` when nothing is exported or signed, `damaged` when data set or signature do not fit the
 *   manifest, `locked` when a run writes another manifest meanwhile
 */
export async function packEvidence(
  pipeline: Pipeline,
  { keyFile, ...settings }: EvidenceSettings = {},
): Promise<{ readonly tar: Uint8Array; readonly files: readonly string[] }> {
  const options = readOptions(settings)
  const key = keyFile === undefined ? null : await readVerifyingKey(keyFile, options)
  const found = await readEvidence(await asDescribed(pipeline, 'status'), key, version)
  return evidenceTar(found, key)
}

export type PruneSettings = ChangeSettings & {
  /** `90d`, `6w`, `24mo`, `2y`. Default: `load.keep`. */
  readonly olderThan?: string
  /** Reports what would be removed, and changes nothing. */
  readonly dryRun?: boolean
}

/**
 * Permanently removes the partitions whose windows ended so long ago. No run requests them again.
 * @throws ExportError `config` when the pipeline has no windows or no age is given, `locked` during a run
 */
export async function pruneDataSet(pipeline: Pipeline, settings: PruneSettings = {}): Promise<PruneResult> {
  const before = pruneBefore(pipeline, settings.olderThan, systemClock.now())
  const described = await asDescribed(pipeline, 'change')
  return prune(described, before, changing(settings))
}

export type ForgetSettings = ChangeSettings & {
  /** Reports what would be removed, and changes nothing. */
  readonly dryRun?: boolean
}

/**
 * Takes people out of a data set, and keeps them out of later runs.
 * @throws ExportError `config` when the data set holds no identities, or the mask key is another one; `locked` during a
 *   run
 */
export async function forgetPeople(
  pipeline: Pipeline,
  identities: readonly string[],
  settings: ForgetSettings = {},
): Promise<ForgetResult> {
  const { env } = readOptions(settings)
  const described = await asDescribed(pipeline, 'change')
  const maskKey = await readMaskKey(described, env)
  return forget(described, identities, changing(settings, maskKey))
}

function changing(
  { stop = new AbortController().signal, onWarning = () => {}, env, dryRun = false }: ForgetSettings,
  maskKey: Uint8Array | null = null,
) {
  const onLog = (_level: unknown, message: string): void => onWarning(message)
  return changeOptions({ onLog, stop, maskKey, dryRun }, env)
}

/**
 * Serves an emulation of the service with made-up data on 127.0.0.1.
 * @throws ExportError 'config' when an option is out of range or the port is taken
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  try {
    return await openSandbox(options)
  } catch (cause) {
    if (cause instanceof SandboxOptionError) {
      throw new ExportError({
        kind: 'config',
        what: cause.message,
        where: 'options of the sandbox',
        next: 'Correct them.',
        cause,
      })
    }
    if (cause instanceof Error && 'code' in cause && 'port' in cause) {
      throw new ExportError({
        kind: 'config',
        what: cause.code === 'EADDRINUSE' ? 'The port is taken' : `The sandbox cannot listen: ${cause.code}`,
        where: `port ${cause.port}`,
        next: 'Choose another port; 0 takes a free one.',
        cause,
      })
    }
    throw cause
  }
}
