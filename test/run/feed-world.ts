import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RunSettings } from '../../src/run-options.ts'
import { copyAsKilled } from '../support/copy-as-killed.ts'
import type { SandboxOptions } from '../support/sandbox.ts'
import { sandboxOf, worldAt } from './world.ts'

export const DAY_MS = 86_400_000
const BEGIN_MS = Date.parse('2024-01-01')

export type FeedWorld = Awaited<ReturnType<typeof feedWorld>>

/**
 * A data set of feeds, and a sandbox whose days the test chooses.
 * @param extract the section `extract` of the pipeline, without braces
 * @param load more of its section
 */
export async function feedWorld(extract: string, options: SandboxOptions = {}, load = 'format: csv') {
  /** Days since the first credential; later ones have not come yet. */
  const world = { day: 0 }
  const sandbox = await sandboxOf({
    records: 150,
    domains: ['scatterholt.com', 'quillmere.net', 'tarnhollow.io'],
    now: () => BEGIN_MS + world.day * DAY_MS,
    ...options,
  })
  const env = { SPILLWAY_TOKEN: sandbox.token }
  const here = worldAt(sandbox.baseUrl, '', { load: `path: out, ${load}`, env })
  const output = join(here.folder, 'out')
  const run = (changed = extract, settings: RunSettings = {}) =>
    here.run('', `resource: feed, ${changed}`, settings)
  return Object.assign(world, {
    sandbox,
    folder: here.folder,
    output,
    run,
    /** Runs, and goes on with the files as they were at an event of its log: as if it was killed there. */
    async runAndKill(event: number) {
      const copy = join(here.folder, `copy-${randomUUID()}`)
      const abort = new AbortController()
      let events = 0
      const onLog = (): void => {
        if (++events !== event) return
        copyAsKilled(output, copy)
        abort.abort()
      }
      await run(extract, { onLog, abort: abort.signal, stop: abort.signal }).catch(() => {})
      if (!existsSync(copy)) return
      rmSync(output, { recursive: true })
      cpSync(copy, output, { recursive: true })
    },
    /** Ids of the rows in sealed shards, by feed. */
    ids() {
      const found: Record<string, readonly number[]> = {}
      for (const [folder, ids] of Object.entries(here.idsByFolder())) {
        const [feed = ''] = folder.split('/')
        found[feed] = [...(found[feed] ?? []), ...ids]
      }
      return found
    },
    /** Ids of what has come so far. */
    expected: (identifier: number | null) => [...sandbox.expectedFeed(identifier)].map(({ id }) => id),
    isComplete: here.isWhole,
    /** Ends the sandbox and removes the files before the tests of the file are done. */
    async end() {
      await sandbox.close()
      rmSync(here.folder, { recursive: true, force: true })
    },
  })
}

export function sorted(ids: readonly number[] | undefined): readonly number[] {
  return [...(ids ?? [])].sort((a, b) => a - b)
}
