import { ExportError, type Pipeline } from './core/index.ts'
import { DataSet, type Verification, verifyDataSet as verify } from './data-set/index.ts'
import {
  type PipelineSettings,
  type ReadOptions,
  readMaskKey,
  readVerifyingKey,
  readPipeline as resolveFile,
  pipelineFrom as resolveSettings,
} from './pipeline/index.ts'
import type { RunSummary } from './run/index.ts'
import { type RunSettings, runOptions, type Settings } from './run-options.ts'
import type { Sandbox, SandboxOptions } from './sandbox/index.ts'

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

export type VerifySettings = Pick<ReadSettings, 'env' | 'cwd'> & {
  /** File of the public Ed25519 key, PEM: the manifest has to be signed under it. */
  readonly keyFile?: string | undefined
  /** Called before each shard, with its path. */
  readonly onShard?: (path: string) => void
  /** With a key: the last signed run has to have ended then or later, epoch ms. */
  readonly notBeforeMs?: number | null
}

/** Reads every shard again and compares it with its entry in the manifest. */
export async function verifyDataSet(
  pipeline: Pipeline,
  { onShard = () => {}, notBeforeMs = null, keyFile, ...settings }: VerifySettings = {},
): Promise<Verification> {
  const signedBy = keyFile === undefined ? null : await readVerifyingKey(keyFile, readOptions(settings))
  const maskKey = await readMaskKey(pipeline, readOptions(settings).env).catch(() => null)
  return verify(await DataSet.of(pipeline, 'read', maskKey), { onShard, notBeforeMs, signedBy })
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
