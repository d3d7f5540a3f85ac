import type { KeyObject } from 'node:crypto'
import { ExportError, type Pipeline, systemClock } from './core/index.ts'
import {
  type Completeness,
  type Described,
  describeDataSet,
  type ForgetResult,
  forgetPeople as forget,
  type LoadOptions,
  type LoadSummary,
  loadWarehouse as load,
  type PruneResult,
  pruneDataSet as prune,
  type QueryResult,
  type QuerySettings,
  type QueryStream,
  queryPipeline as query,
  readEvidence,
  type Signed,
  type StatusResult,
  type SummarizedDataSet,
  type SummarizeOptions,
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
  type PipelineSettings,
  pruneBefore,
  type ReadOptions,
  readMaskKey,
  readSigningKey,
  readVerifyingKey,
  readPipeline as resolveFile,
  pipelineFrom as resolveSettings,
} from './pipeline/index.ts'
import type { PlanResult, RunSummary } from './run/index.ts'
import {
  type ChangeSettings,
  changeOptions,
  neverStopped,
  type RunSettings,
  runOptions,
  type Settings,
} from './run-options.ts'
import type { Sandbox, SandboxOptions } from './sandbox/index.ts'
import type { Manifest } from './state/index.ts'
import { evidenceTar } from './summary/index.ts'
import type { Target } from './warehouse/index.ts'

/** How a pipeline is read. Environment and working directory default to those of the process. */
export type ReadSettings = Omit<ReadOptions, 'env' | 'cwd'> & Settings<Pick<ReadOptions, 'env' | 'cwd'>>

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
  // Before anything is awaited: the program may change it from then on.
  const own = copyOf(pipeline)
  const options = await runOptions(own, settings)
  const { runPipeline: run } = await import('./run/index.ts')
  return run(own, options)
}

function copyOf(pipeline: Pipeline): Pipeline {
  try {
    return structuredClone(pipeline)
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: 'The pipeline holds a value that cannot be copied',
      where: '',
      next: 'Give it strings, numbers, booleans, lists and objects alone.',
      cause,
    })
  }
}

/** Plans a run with these settings; sends nothing. @throws ExportError when such a run could not begin */
export async function readPlan(pipeline: Pipeline, settings: RunSettings = {}): Promise<PlanResult> {
  const { readPlan: planOf } = await import('./run/index.ts')
  return planOf(pipeline, await runOptions(pipeline, settings))
}

/** A pipeline; or its data set, which the commands have described already: what is there decides. */
type DataSet = Pipeline | Described

async function described(dataSet: DataSet, use: Use = 'read'): Promise<Described> {
  return 'planned' in dataSet ? dataSet : describeDataSet({ pipeline: dataSet, unknown: null }, use)
}

/** Queries an export, or a DuckDB file into which it was loaded; the result is kept in memory. */
export async function queryPipeline(
  dataSet: DataSet,
  sql: string,
  settings: QuerySettings,
): Promise<QueryResult> {
  return query((await described(dataSet)).pipeline, sql, settings)
}

/** The same as a stream. */
export async function streamQuery<T>(
  dataSet: DataSet,
  sql: string,
  settings: QuerySettings,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  return stream((await described(dataSet)).pipeline, sql, settings, take)
}

/** Loads the shards that the manifest lists into a database, each once. */
export async function loadWarehouse(
  dataSet: DataSet,
  target: Target,
  settings: Settings<LoadOptions> = {},
): Promise<LoadSummary> {
  const { clock = systemClock, stop = neverStopped(), schema = null, table = null } = settings
  const { mode = 'append', evolve = false, onWait = () => {}, onShard = () => {} } = settings
  const options = { clock, stop, schema, table, mode, evolve, onWait, onShard }
  return load((await described(dataSet)).pipeline, target, options)
}

/** Summarizes a data set, with what only its rows tell. */
export async function summarizeDataSet(
  dataSet: DataSet,
  settings: Settings<SummarizeOptions> = {},
): Promise<SummarizedDataSet> {
  const { clock = systemClock, stop = neverStopped(), format = 'html', warn = () => {} } = settings
  const options = { clock, stop, format, warn, version: settings.version ?? version }
  return summarize((await described(dataSet)).pipeline, options)
}

export type StatusSettings = {
  /** Epoch milliseconds. Default: now. */
  readonly nowMs?: number
}

/** The status of a pipeline, also during a run. @throws ExportError `damaged` or `config` */
export async function readStatus(dataSet: DataSet, settings: StatusSettings = {}): Promise<StatusResult> {
  const { nowMs = systemClock.now() } = settings
  return statusOf((await described(dataSet, 'status')).pipeline, nowMs)
}

type KeySettings = Pick<ReadSettings, 'env' | 'cwd'> & {
  /** File of the public Ed25519 key, PEM. */
  readonly keyFile?: string | undefined
}

async function verifyingKey({ keyFile, ...settings }: KeySettings): Promise<KeyObject | null> {
  return keyFile === undefined ? null : readVerifyingKey(keyFile, readOptions(settings))
}

export type VerifySettings = KeySettings & {
  /** Called before each shard, with its path. */
  readonly onShard?: (path: string) => void
  /** With a key: the last signed run has to have ended then or later, epoch ms. */
  readonly notBeforeMs?: number | null
}

/**
 * Reads every shard again and compares it with its entry in the manifest; with `keyFile`, the manifest has to be signed
 * under that key.
 */
export async function verifyDataSet(
  dataSet: DataSet,
  { onShard = () => {}, notBeforeMs = null, ...key }: VerifySettings = {},
): Promise<Verification> {
  const signedBy = await verifyingKey(key)
  const { pipeline, ...told } = await described(dataSet)
  return verify(pipeline, { onShard, notBeforeMs, signedBy, ...told })
}

/**
 * Signs the manifest, and with it the digest of every shard; reads none of them, as `verifyDataSet` does.
 * @param keyFile of the private Ed25519 key, PEM; SPILLWAY_SIGNING_PASSPHRASE opens an encrypted one
 * @throws ExportError `config` when there is no such key or nothing is exported, `damaged` when the data set differs
 *   from its manifest, `locked` during a run
 */
export async function signDataSet(
  dataSet: DataSet,
  keyFile: string,
  settings: ChangeSettings = {},
): Promise<Signed> {
  const { pipeline } = await described(dataSet, 'status')
  return sign(pipeline, await readSigningKey(keyFile, readOptions(settings)), changeOptions(settings))
}

/** `keyFile`: that key is packed too, and the signature has to fit it. */
export type EvidenceSettings = KeySettings

/** What is in an archive of evidence. */
export type PackedEvidence = {
  readonly tar: Uint8Array
  readonly files: readonly string[]
  readonly manifest: Manifest
  /** Whether all that the file plans is exported, and what is left out by intent. */
  readonly completeness: Completeness
}

/**
 * The evidence that an export is complete and unchanged, as the bytes of a tar archive; never rows.
 * @throws ExportError `config` when nothing is exported or signed, `damaged` when data set or signature do not fit the
 *   manifest, `locked` when a run writes another manifest meanwhile
 */
export async function packEvidence(
  dataSet: DataSet,
  settings: EvidenceSettings = {},
): Promise<PackedEvidence> {
  const key = await verifyingKey(settings)
  const found = await readEvidence((await described(dataSet, 'status')).pipeline, key, version)
  const { manifest, completeness } = found
  return { ...(await evidenceTar(found, key)), manifest, completeness }
}

export type ForgetSettings = ChangeSettings & {
  /** Reports what would be removed, and changes nothing. */
  readonly dryRun?: boolean
}

export type PruneSettings = ForgetSettings & {
  /** `90d`, `6w`, `24mo`, `2y`. Default: `load.keep`. */
  readonly olderThan?: string | undefined
}

/**
 * Permanently removes the partitions whose windows ended so long ago. No run requests them again.
 * @throws ExportError `config` when the pipeline has no windows or no age is given, `locked` during a run
 */
export async function pruneDataSet(dataSet: DataSet, settings: PruneSettings = {}): Promise<PruneResult> {
  const { pipeline } = await described(dataSet, 'change')
  const before = pruneBefore(pipeline, settings.olderThan, systemClock.now())
  return prune(pipeline, before, changeOptions(settings))
}

/**
 * Takes people out of a data set, and keeps them out of later runs.
 * @throws ExportError `config` when the data set holds no identities, or the mask key is another one; `locked` during a
 *   run
 */
export async function forgetPeople(
  dataSet: DataSet,
  identities: readonly string[],
  settings: ForgetSettings = {},
): Promise<ForgetResult> {
  const { pipeline } = await described(dataSet, 'change')
  const maskKey = await readMaskKey(pipeline, readOptions(settings).env)
  return forget(pipeline, identities, changeOptions(settings, maskKey))
}

/**
 * Serves an emulation of the service with made-up data on 127.0.0.1.
 * @throws ExportError 'config' when an option is out of range or the port is taken
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { SandboxOptionError, startSandbox: openSandbox } = await import('./sandbox/index.ts')
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
