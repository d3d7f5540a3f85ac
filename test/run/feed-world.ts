import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type RunSummary, readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { copyAsKilled } from '../support/copy-as-killed.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../support/sandbox.ts'

export const DAY_MS = 86_400_000
const BEGIN_MS = Date.parse('2024-01-01')

/** A data set of feeds, and a sandbox whose days the test chooses. */
export type FeedWorld = {
  readonly sandbox: Sandbox
  readonly folder: string
  readonly output: string
  /** Days since the first credential; later ones have not come yet. */
  day: number
  run(options?: FeedRun): Promise<RunSummary>
  /** Runs, and goes on with the files as they were at an event of its log: as if it was killed there. */
  runAndKill(event: number, options?: FeedRun): Promise<void>
  /** Ids of the rows in sealed shards, by feed. */
  ids(): Record<string, readonly number[]>
  /** Ids of what has come so far. */
  expected(identifier: number | null): readonly number[]
  isComplete(): boolean
  state(): string
  /** Ends the sandbox and removes the files before the test ends. */
  end(): Promise<void>
}

type FeedRun = {
  /** Braces of a section of the pipeline file. */
  readonly extract?: string
  readonly redo?: readonly string[]
}

/**
 * @param extract the section `extract` of the pipeline, without braces
 * @param service more of its section @param load more of its section
 */
export async function feedWorld(
  extract: string,
  options: SandboxOptions = {},
  service = 'timeout: 60s',
  load = 'format: csv',
): Promise<FeedWorld> {
  const world = { day: 0 }
  const sandbox = await startSandbox({
    records: 150,
    nastyRate: 0,
    domains: ['scatterholt.com', 'quillmere.net', 'tarnhollow.io'],
    requestsPerSecond: 0,
    basicRequestsPerSecond: 0,
    now: () => BEGIN_MS + world.day * DAY_MS,
    ...options,
  })
  onTestFinished(() => sandbox.close())
  const folder = mkdtempSync(join(tmpdir(), 'spillway-feed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const output = join(folder, 'out')
  const start = async (
    { extract: changed = extract, redo = [] }: FeedRun,
    log: () => void,
    abort: AbortSignal,
  ) => {
    writeFileSync(
      join(folder, 'p.yaml'),
      `name: trial
service: { base_url: '${sandbox.baseUrl}', requests_per_second: 10000, retries: 0, ${service} }
extract: { resource: feed, ${changed} }
load: { path: out, ${load} }
`,
    )
    const pipeline = await readPipeline('p.yaml', { env: {}, cwd: folder })
    const settings = { env: { SPILLWAY_TOKEN: sandbox.token }, onLog: log, abort, stop: abort, redo }
    return runPipeline(pipeline, await runOptions(pipeline, settings))
  }
  return Object.assign(world, {
    sandbox,
    folder,
    output,
    run: (options: FeedRun = {}) => start(options, () => {}, new AbortController().signal),
    async runAndKill(event: number, options: FeedRun = {}) {
      const copy = join(folder, `copy-${randomUUID()}`)
      const abort = new AbortController()
      let events = 0
      const log = (): void => {
        if (++events !== event) return
        copyAsKilled(output, copy)
        abort.abort()
      }
      await start(options, log, abort.signal).catch(() => {})
      if (!existsSync(copy)) return
      rmSync(output, { recursive: true })
      cpSync(copy, output, { recursive: true })
    },
    ids() {
      const found: Record<string, number[]> = {}
      const root = join(output, 'credentials')
      for (const name of existsSync(root) ? readdirSync(root, { recursive: true }) : []) {
        const path = String(name)
        if (!path.endsWith('.csv')) continue
        const [feed = ''] = path.split('/')
        const lines = readFileSync(join(root, path), 'utf8').split('\n').slice(1, -1)
        found[feed] = [...(found[feed] ?? []), ...lines.map((line) => Number.parseInt(line, 10))]
      }
      return found
    },
    expected: (identifier: number | null) => [...sandbox.expectedFeed(identifier)].map(({ id }) => id),
    isComplete: () => existsSync(join(output, '_SUCCESS')),
    async end() {
      await sandbox.close()
      rmSync(folder, { recursive: true, force: true })
    },
    state: () => readFileSync(join(output, '_state/checkpoint.jsonl'), 'utf8'),
  })
}

export function sorted(ids: readonly number[] | undefined): readonly number[] {
  return [...(ids ?? [])].sort((a, b) => a - b)
}
