import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { openQueue, type Queue, work } from '../../../src/cluster/index.ts'
import { isExportError, systemClock } from '../../../src/core/index.ts'
import { readPipeline, readSubmitted } from '../../../src/pipeline/index.ts'
import { runPipeline } from '../../../src/run/index.ts'
import { runOptions } from '../../../src/run-options.ts'
import { shardHashes } from '../../fault/support.ts'
import { scratchFolder } from '../../support/at-the-end.ts'
import { freePort } from '../../support/free-port.mjs'
import { carryOut } from '../../support/in-this-process.ts'
import { PASSWORD, pgRows } from '../../support/postgres/client.ts'
import { newDatabase } from '../../support/postgres/database.ts'
import { readParquet } from '../../support/read-shards.ts'
import { expectedOfDomains, expectSame } from '../../support/rows.ts'
import type { Ended } from '../../support/run-cli.ts'
import { repeatedSearches, type SandboxOptions, startSandbox } from '../../support/sandbox.ts'
import { THOROUGH } from '../../support/thorough.ts'
import { type Environment, type PipelineParts, pipelineText, SMALL } from '../../support/workspace.ts'

export type Backend = 'postgres' | 'redis'

const REDIS = ['valkey-server', 'redis-server'].find((name) => spawnSync(name, ['--version']).status === 0)

/** Tests on a backend. Without Redis those on it are skipped, and vitest names them. */
export function describeOn(backend: Backend, tests: (backend: Backend) => void): void {
  const isMissing = backend === 'redis' && REDIS === undefined
  const needs = isMissing ? ' (needs valkey-server or redis-server on the path)' : ''
  describe.skipIf(isMissing)(`on ${backend}${needs}`, () => tests(backend))
}

/** The same tests on each backend. */
export function describeOnEach(tests: (backend: Backend) => void): void {
  for (const backend of ['postgres', 'redis'] as const) describeOn(backend, tests)
}

const SCRIPT = join(import.meta.dirname, 'worker.mjs')

export type WorkerProcess = ReturnType<typeof follow>

type WorkerSettings = {
  readonly concurrency?: number
  readonly sliceMs?: number
  /** By how much the clock of the worker is ahead. */
  readonly aheadMs?: number
  readonly env?: Environment
}

export type World = Awaited<ReturnType<typeof world>>

const domainOf = (organization: string): string => `${organization}.example.com`

/** Of workers of tests. No machine is so busy that a worker loses such a lease. */
const USUAL = { concurrency: 4, leaseMs: 300_000, sliceMs: 60_000 }

/** For tests in which another worker takes over: a sixth of the usual one. A busy machine may cost a worker its lease. */
export const SHORT_LEASE = { leaseMs: 1_500 }

type WorldOptions = {
  readonly backend: Backend
  readonly organizations?: number
  readonly sandbox?: SandboxOptions
  readonly parts?: PipelineParts
  readonly env?: Environment
  /** Of each worker. */
  readonly leaseMs?: number
  /** Of a server that belongs to the test. */
  readonly url?: string
}

export async function world({
  backend,
  organizations: count = 1,
  parts = {},
  leaseMs = USUAL.leaseMs,
  ...options
}: WorldOptions) {
  const organizations = Array.from({ length: count }, (_, n) => `org-${n}`)
  const sandbox = await startSandbox({
    ...SMALL,
    records: 120,
    ...options.sandbox,
    domains: organizations.map(domainOf),
  })
  const folder = scratchFolder()
  // Libraries read it from the environment of the process, also of this one, which runs commands.
  process.env.PGPASSWORD = PASSWORD
  const url = options.url ?? (backend === 'redis' ? (await startRedis()).url : await newDatabase())
  const env: Environment & { SPILLWAY_QUEUE_URL: string } = {
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_TOKEN: sandbox.token,
    SPILLWAY_QUEUE_URL: url,
    PGPASSWORD: PASSWORD,
    ...options.env,
  }
  const here = {
    folder,
    sandbox,
    env,
    organizations,
    file: (organization: string) => `${organization}.yaml`,
    write(organization: string, changed: PipelineParts = parts): void {
      const text = pipelineText({
        name: organization,
        ...changed,
        service: { organization, ...changed.service },
        extract: { domains: [domainOf(organization)], page_size: 10, concurrency: 1, ...changed.extract },
        load: { path: organization, partition_by: ['query', 'window'], shard_rows: 25, ...changed.load },
      })
      writeFileSync(join(folder, here.file(organization)), text)
    },
    worker({ env: own = {}, ...settings }: WorkerSettings = {}): WorkerProcess {
      const child = spawn(process.execPath, [SCRIPT, JSON.stringify({ ...USUAL, leaseMs, ...settings })], {
        cwd: folder,
        env: { PATH: process.env.PATH ?? '', HOME: tmpdir(), ...env, ...own },
        stdio: ['ignore', 'inherit', 'pipe'],
      })
      return follow(child)
    },
    /** A worker that no test stops or kills: in this process, except in thorough runs. */
    workerHere: (settings: Pick<WorkerSettings, 'env'> = {}): Pick<WorkerProcess, 'log'> =>
      THOROUGH ? here.worker(settings) : workHere(folder, { ...env, ...settings.env }, leaseMs),
    submit: (...words: string[]): Promise<Ended> =>
      here.cli('submit', ...organizations.map(here.file), ...words),
    cli: (...words: string[]) => carryOut({ args: words, cwd: folder, env }),
    searches: (organization?: string) =>
      sandbox.requests.filter(
        ({ kind, body }) =>
          kind === 'search' &&
          (organization === undefined || JSON.stringify(body).includes(`"${domainOf(organization)}"`)),
      ),
    expectRows: async (organization: string) =>
      expectSame(
        await readParquet(join(folder, organization)),
        expectedOfDomains(sandbox, [domainOf(organization)]),
      ),
    digests: (organization: string) => shardHashes(join(folder, organization)),
    /** Opens the queue as workers do, until the work is done. */
    async withQueue<T>(use: (queue: Queue) => Promise<T>): Promise<T> {
      const given = { clock: systemClock, password: null, warn: () => {} }
      const queue = await openQueue(url.replace('postgres@', `postgres:${PASSWORD}@`), given)
      const result = await use(queue)
      await queue.close()
      return result
    },
    /** The organizations' jobs in PostgreSQL, by name. */
    jobs: () => pgRows(url, `SELECT * FROM bullmq.job WHERE queue = 'organizations' ORDER BY name`),
  }
  for (const organization of organizations) here.write(organization)
  return here
}

/** The same as worker.mjs, in this process: for tests that do not stop a worker, kill it or read all its output. */
function workHere(folder: string, env: Environment, leaseMs: number): Pick<WorkerProcess, 'log'> {
  const stop = new AbortController()
  const abort = new AbortController()
  let text = ''
  const log = (level: string, message: string, fields: unknown = {}): void => {
    text += `${level} ${message} ${JSON.stringify(fields)}\n`
  }
  const ended = (async () => {
    const queue = await openQueue(env.SPILLWAY_QUEUE_URL ?? '', {
      clock: systemClock,
      password: null,
      warn: (message) => log('warn', message),
      wait: stop.signal,
    })
    try {
      await work({
        queue,
        clock: systemClock,
        ...USUAL,
        leaseMs,
        stop: stop.signal,
        log,
        readPipeline: (file) => readSubmitted(file, folder, { env, cwd: folder }),
        runOptions: (pipeline, given) => runOptions(pipeline, { env, abort: abort.signal, ...given }),
      })
    } catch (error) {
      if (!(isExportError(error, 'interrupted') && stop.signal.aborted)) throw error
    } finally {
      await queue.close()
    }
  })()
  onTestFinished(() => {
    stop.abort()
    abort.abort()
    return ended
  })
  return { log: () => text }
}

function follow(child: ChildProcess) {
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    log: () => text,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    ended: once(child, 'exit').then(([code]) => code as number | null),
  }
}

/** The result of one undisturbed run of the same pipeline and data, and its number of searches. */
export async function undisturbed(
  { folder, file, env, searches }: World,
  organization: string,
): Promise<{ readonly shards: ReadonlyMap<string, string>; readonly searches: number }> {
  const before = searches(organization).length
  const overrides = { output: `alone-${organization}` }
  const pipeline = await readPipeline(file(organization), { env, cwd: folder, overrides })
  // Neither the rate nor the budget affects the result of a run.
  const service = { ...pipeline.service, requestsPerSecond: 1_000 }
  const extract = { ...pipeline.extract, maxRequests: null }
  const summary = await runPipeline({ ...pipeline, service, extract }, await runOptions(pipeline, { env }))
  if (summary.status !== 'complete') throw summary.error ?? new Error(summary.status)
  return {
    shards: await shardHashes(join(folder, overrides.output)),
    searches: searches(organization).length - before,
  }
}

const LOST_LEASE = /the time slice ends: (?:The lease of the job has run out|The job is another worker)/g

/**
 * Compares rows and bytes with one undisturbed run of each organization. Each kill, and each lost lease, may repeat a
 * search: the one in flight. On a busy machine, workers lose leases that no test takes from them.
 */
export async function expectAllOfIt(
  here: World,
  workers: readonly Pick<WorkerProcess, 'log'>[],
  kills = 0,
): Promise<void> {
  const { code, stderr } = await here.submit('--wait')
  expect(code, stderr).toBe(0)
  const lost = workers.flatMap((worker) => worker.log().match(LOST_LEASE) ?? []).length
  expect(repeatedSearches(here.searches())).toBeLessThanOrEqual(kills + lost)
  for (const organization of here.organizations) {
    await here.expectRows(organization)
    expect(await here.digests(organization)).toEqual((await undisturbed(here, organization)).shards)
  }
}

export type Redis = Awaited<ReturnType<typeof startRedis>>

export async function startRedis() {
  const folder = scratchFolder()
  const port = await freePort()
  let child: ChildProcess | null = null
  const start = async (): Promise<void> => {
    const words = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
    child = spawn(REDIS!, [...words, '--appendonly', 'yes'], { stdio: ['ignore', 'pipe', 'ignore'] })
    let text = ''
    child.stdout!.setEncoding('utf8').on('data', (more: string) => {
      text += more
    })
    await until('Redis is ready', () => text.includes('Ready to accept connections'))
  }
  const kill = async (): Promise<void> => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  onTestFinished(kill)
  await start()
  return { url: `redis://127.0.0.1:${port}`, port, kill, start }
}

/** The time between two looks of {@link until}, on a machine that is not busy. */
export const LOOK_MS = 20

/** Waits until a condition holds, and fails after three minutes. @returns how often it did not hold */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<number> {
  const end = Date.now() + 180_000
  for (let looks = 0; ; looks++) {
    if (await isSo()) return looks
    if (Date.now() > end) throw new Error(`it did not come to be: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
