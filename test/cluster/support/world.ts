import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type SandboxOptions, startSandbox } from '../../../src/sandbox/index.ts'
import { summaryShape } from '../../e2e/support/json-shapes.ts'
import {
  type Environment,
  PIPELINE,
  type PipelineParts,
  type Place,
  place,
  SMALL,
  type Summary,
} from '../../e2e/support/place.ts'
import { readParquet } from '../../e2e/support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from '../../e2e/support/rows.ts'
import { PASSWORD, pgClient } from '../../support/postgres/client.ts'
import { newDatabase } from '../../support/postgres/database.ts'
import { type Ended, runCli } from '../../support/run-cli.ts'

export const DOMAINS = ['scatterholt.com', 'quillmere.net', 'harrowgate.example']

/** Chains of three windows each, so that there is something to share. */
export const EXTRACT = {
  domains: DOMAINS,
  windows: { from: '2024-01-01', until: '2025-01-01', every: 'month', per_chain: 3 },
  page_size: 10,
  concurrency: 6,
}

/** With `EXTRACT` some ten pages a chain, each of which takes a while. */
export const RECORDS: SandboxOptions = { records: 400, domains: DOMAINS, latencyMs: 60 }

export type WorkerProcess = {
  readonly pid: number
  kill(signal: NodeJS.Signals): void
  readonly ended: Promise<Ended>
}

export type World = Place & {
  /** Of the sandbox. */
  readonly options: SandboxOptions
  readonly database: string
  /** Starts one, which is killed when the test ends. */
  worker(options?: { concurrency?: number; env?: Environment }): Promise<WorkerProcess>
  submit(...flags: string[]): Promise<Ended>
  /** Submits, and waits for the end. */
  submitAndWait(...flags: string[]): Promise<Ended & { readonly summary: Summary }>
  status(): Promise<ClusterJson>
  /** What differs between rows that are there and rows that should be. */
  difference(): Promise<typeof SAME>
  query(sql: string): Promise<Record<string, unknown>[]>
}

export type ClusterJson = {
  readonly runs: readonly {
    status: string
    chains: Record<string, number>
    requests: number
    halt: string | null
  }[]
  readonly workers: readonly {
    pid: number
    silent_s: number
    chains: readonly { chain: number; fence: number }[]
  }[]
}

/** A sandbox, a pipeline, and a database with the tables. @param database one of a server of the test's own */
export async function world(
  parts: PipelineParts,
  options: SandboxOptions = {},
  { database, env = {} }: { database?: string; env?: Environment } = {},
): Promise<World> {
  const url = database ?? (await newDatabase())
  const here = await place(
    { ...parts, extract: { ...EXTRACT, ...parts.extract } },
    { ...RECORDS, ...options },
    {
      SPILLWAY_DATABASE_URL: url,
      PGPASSWORD: PASSWORD,
      ...env,
    },
  )
  const made = await here.cli('cluster', 'init')
  if (made.code !== 0) throw new Error(made.stderr)
  return {
    ...here,
    options,
    database: url,
    worker: ({ concurrency = 4, env: own = {} } = {}) => {
      return new Promise((resolve) => {
        const ended = runCli({
          args: ['worker', '--concurrency', String(concurrency), '--log-level', 'debug'],
          cwd: here.folder,
          env: { ...here.env, ...own },
          onStart(kill, pid) {
            onTestFinished(() => kill('SIGKILL'))
            // The promise that comes back is there only after this call.
            queueMicrotask(() => resolve({ pid, kill, ended }))
          },
        })
      })
    },
    submit: (...flags) => here.cli('submit', PIPELINE, ...flags),
    async submitAndWait(...flags) {
      const ended = await here.cli('submit', PIPELINE, '--wait', '--json', ...flags)
      return {
        ...ended,
        get summary() {
          return summaryShape.parse(JSON.parse(ended.stdout))
        },
      }
    },
    async status() {
      const { stdout } = await here.cli('status', PIPELINE, '--json')
      return JSON.parse(stdout).cluster
    },
    async difference() {
      return difference(await readParquet(here.output), expectedOfDomains(here.sandbox, DOMAINS))
    },
    async query(sql) {
      const client = await pgClient(url)
      try {
        return (await client.query(sql)).rows
      } finally {
        await client.end()
      }
    },
  }
}

/** Digests of all shards, by path below the data set. */
export async function digests(output: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  const names = await readdir(join(output, 'credentials'), { recursive: true })
  for (const name of names.filter((each) => each.endsWith('.parquet')).sort()) {
    const bytes = await readFile(join(output, 'credentials', name))
    found[name] = createHash('sha256').update(bytes).digest('hex')
  }
  return found
}

/** What one machine makes of the same pipeline and the same data, undisturbed: its shards, and how many searches it takes. */
export async function ofOneMachine(
  here: World,
): Promise<{ shards: Record<string, string>; searches: number }> {
  const sandbox = await startSandbox({ ...SMALL, ...RECORDS, ...here.options, latencyMs: 0, faults: [] })
  try {
    const { code, stderr } = await runCli({
      args: ['run', PIPELINE, '--output', 'alone', '--concurrency', '1', '--max-requests', '100000'],
      cwd: here.folder,
      env: { ...here.env, SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token },
    })
    if (code !== 0) throw new Error(stderr)
    const searches = sandbox.requests.filter(({ kind }) => kind === 'search').length
    return { shards: await digests(join(here.folder, 'alone')), searches }
  } finally {
    await sandbox.close()
  }
}

/** The bytes of shards of a partition depend on its rows alone. */
export const LOAD = { load: { partition_by: ['query', 'window'], shard_rows: 25 } }
/** Chains in flight, of all workers together: see EXTRACT. */
export const IN_FLIGHT = EXTRACT.concurrency

/** After whatever has happened: what one machine makes undisturbed, for at most so many searches more. */
export async function expectAllOfIt(here: World, more: number): Promise<void> {
  const { code, stderr } = await here.submitAndWait()
  expect(code, stderr).toBe(0)
  const searches = here.searches().length
  expect(await here.difference()).toEqual(SAME)
  const alone = await ofOneMachine(here)
  expect(await digests(here.output)).toEqual(alone.shards)
  expect(searches - alone.searches).toBeLessThanOrEqual(more)
  expect((await here.cli('verify', 'pipeline.yaml')).code).toBe(0)
}

/** Waits until something is so, and fails when it does not come to be within a minute. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 60_000
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`it did not come to be: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
