import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/core/index.ts'
import {
  type RunSummary,
  readPipeline,
  readPlan,
  readStatus,
  runOptions,
  runPipeline,
} from '../../src/index.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../support/sandbox.ts'

/** A clock without waits. */
export const IMPATIENT: Clock = {
  now: () => Date.parse('2025-03-10T12:00:00Z'),
  monotonicMs: () => performance.now(),
  sleep: async (_ms, signal) => signal.throwIfAborted(),
}

export type LogLine = { readonly level: string; readonly message: string; readonly fields: object }

export async function sandboxOf(options: SandboxOptions): Promise<Sandbox> {
  const sandbox = await startSandbox({ requestsPerSecond: 0, basicRequestsPerSecond: 0, ...options })
  onTestFinished(() => sandbox.close())
  return sandbox
}

/** Exports of one pipeline, in this process, against a service that may change between exports. */
export async function exportsTo(name = 'out') {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-quick-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const log: LogLine[] = []
  const read = async (baseUrl: string, extract: string, service = '') => {
    await writeFile(
      join(folder, 'p.yaml'),
      `name: quick
service: { base_url: '${baseUrl}', requests_per_second: 10000, basic_requests_per_second: 10000${service} }
extract: { ${extract} }
load: { format: csv, path: ${name} }
`,
    )
    return readPipeline('p.yaml', { env: {}, cwd: folder })
  }
  const onLog = (level: string, message: string, fields: object = {}) =>
    void log.push({ level, message, fields })
  return {
    log,
    read,
    async run(url: string, token: string, extract: string, service?: string): Promise<RunSummary> {
      const pipeline = await read(url, extract, service)
      const env = { SPILLWAY_TOKEN: token }
      return runPipeline(pipeline, await runOptions(pipeline, { env, clock: IMPATIENT, onLog }))
    },
    async plan(url: string, extract: string) {
      const pipeline = await read(url, extract)
      const options = await runOptions(pipeline, { env: { SPILLWAY_TOKEN: 't' }, clock: IMPATIENT })
      return readPlan(pipeline, options)
    },
    async status(url: string, extract: string) {
      return readStatus(await read(url, extract), { nowMs: IMPATIENT.now() })
    },
    /** SHA-256 by path. */
    async shards(): Promise<Record<string, string>> {
      const text = await readFile(join(folder, name, '_manifest.json'), 'utf8')
      const { shards } = JSON.parse(text) as { shards: { path: string; sha256: string }[] }
      return Object.fromEntries(shards.map(({ path, sha256 }) => [path, sha256]))
    },
    async ids(): Promise<number[]> {
      const ids: number[] = []
      for (const path of Object.keys(await this.shards())) {
        const lines = (await readFile(join(folder, name, path), 'utf8')).split('\n')
        for (const line of lines) if (/^\d{9,}/.test(line)) ids.push(Number.parseInt(line, 10))
      }
      return ids
    },
  }
}
