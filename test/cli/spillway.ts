import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/core/index.ts'
import { diskStore } from '../../src/disk/index.ts'
import { takeLock } from '../../src/state/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../support/sandbox.ts'

export { Collector } from '../support/in-this-process.ts'
export { start } from '../support/run-cli.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export type Result = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

export type Environment = Readonly<Record<string, string>>

/** A sandbox without limits but those given. */
export function sandboxWith(options: SandboxOptions = {}): Promise<Sandbox> {
  return startSandbox({
    records: 40,
    requestsPerSecond: 0,
    basicRequestsPerSecond: 0,
    ...options,
  })
}

export function accessTo(sandbox: Sandbox): Environment {
  return { SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token }
}

/** Locks a data set as a run does. @returns what releases it */
export async function lockOf({ output }: { readonly output: string }): Promise<() => Promise<void>> {
  const store = diskStore({ root: output, fileMode: 0o600, dirMode: 0o700 })
  const stop = new AbortController().signal
  const lock = await takeLock(store, { clock: systemClock, stop, fresh: false, warn: () => {} })
  return () => lock.release()
}

/** Runs a command line in this process, which is quicker than starting one. */
export async function spillway(args: readonly string[], cwd: string, env: Environment = {}): Promise<Result> {
  return inThisProcess(args, cwd, env)
}

export type PipelineParts = {
  readonly name?: string
  readonly service?: string
  readonly extract?: string
  /** Windows that one chain requests. */
  readonly perChain?: number
  readonly rest?: string
}

/** Writes a pipeline file of one domain and three months; the parts are inserted as YAML lines. */
export async function writePipeline(folder: string, parts: PipelineParts = {}): Promise<string> {
  const { name = 'trial', service = '', extract = '', rest = '', perChain } = parts
  const together = perChain === undefined ? '' : `, per_chain: ${perChain}`
  const file = `${name}.yaml`
  const lines = [
    `name: ${name}`,
    'service:',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
    '  base_url: ${SPILLWAY_BASE_URL}',
    service || '  requests_per_second: 100',
    'extract:',
    '  domains: [scatterholt.com]',
    `  windows: { from: 2024-01-01, until: 2024-04-01, every: month${together} }`,
    extract,
    rest,
  ]
  await writeFile(join(folder, file), `${lines.filter((line) => line !== '').join('\n')}\n`)
  return file
}

/** A pipeline file in a folder of its own with a sandbox, and how commands are called there, in this process. */
export async function trial(parts: PipelineParts = {}, options: SandboxOptions = {}) {
  const sandbox = await sandboxWith(options)
  const folder = scratchFolder()
  const file = await writePipeline(folder, parts)
  const env = accessTo(sandbox)
  return { sandbox, folder, file, env, call: (...args: string[]) => spillway(args, folder, env) }
}
