import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type RunSummary, runPipeline } from '../../src/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { copyAsKilled } from '../support/copy-as-killed.ts'
import type { Sandbox, SandboxOptions } from '../support/sandbox.ts'
import { idsByFolder, pipelineIn, sandboxOf } from './world.ts'

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
  /** Ends the sandbox and removes the files before the tests of the file are done. */
  end(): Promise<void>
}

type FeedRun = {
  /** Braces of a section of the pipeline file. */
  readonly extract?: string
  readonly redo?: readonly string[]
}

/**
 * @param extract the section `extract` of the pipeline, without braces
 * @param load more of its section
 */
export async function feedWorld(
  extract: string,
  options: SandboxOptions = {},
  load = 'format: csv',
): Promise<FeedWorld> {
  const world = { day: 0 }
  const sandbox = await sandboxOf({
    records: 150,
    domains: ['scatterholt.com', 'quillmere.net', 'tarnhollow.io'],
    now: () => BEGIN_MS + world.day * DAY_MS,
    ...options,
  })
  const folder = scratchFolder()
  const output = join(folder, 'out')
  const start = async (
    { extract: changed = extract, redo = [] }: FeedRun,
    log: () => void,
    abort: AbortSignal,
  ) => {
    const pipeline = await pipelineIn(folder, sandbox.baseUrl, {
      service: 'retries: 0',
      extract: `resource: feed, ${changed}`,
      load: `path: out, ${load}`,
    })
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
      const found: Record<string, readonly number[]> = {}
      for (const [folder, ids] of Object.entries(idsByFolder(output))) {
        const [feed = ''] = folder.split('/')
        found[feed] = [...(found[feed] ?? []), ...ids]
      }
      return found
    },
    expected: (identifier: number | null) => [...sandbox.expectedFeed(identifier)].map(({ id }) => id),
    isComplete: () => existsSync(join(output, '_SUCCESS')),
    async end() {
      await sandbox.close()
      rmSync(folder, { recursive: true, force: true })
    },
  })
}

export function sorted(ids: readonly number[] | undefined): readonly number[] {
  return [...(ids ?? [])].sort((a, b) => a - b)
}
