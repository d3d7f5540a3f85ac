import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { expect } from 'vitest'
import { type Clock, systemClock } from '../../src/core/index.ts'
import { type RunSummary, readPipeline, runPipeline } from '../../src/index.ts'
import { type RunSettings, runOptions } from '../../src/run-options.ts'
import { madeOnce } from '../support/made-once.ts'
import { quarantineByFile } from '../support/quarantine.ts'
import { repeatedSearches, type Sandbox, type SandboxOptions, startSandbox } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { PIPELINE, type PipelineParts, type Workspace, workspaceFor } from '../support/workspace.ts'
import { missingRows, rowsOf } from './rows.ts'
import { dataManifest, diskFault, type Ended, type RunArgs, runCli, shardHashes } from './support.ts'

/** An export that can be repeated: its pipeline and its service. */
export type Scenario = {
  readonly parts: PipelineParts
  readonly sandbox: SandboxOptions
  readonly concurrency: number
  /** Whether shards hold the same bytes however often the export is interrupted; else only the same rows. */
  readonly sameBytes: boolean
}

export type ScenarioSettings = {
  readonly format: 'parquet' | 'csv'
  /** Left out: by query and window. */
  readonly partitionBy?: 'none'
  readonly sandbox?: SandboxOptions
}

const CONCURRENCY = 2

/** Two domains over a month: some fifty rows in eight pages, broken items and empty pages among them. */
export function scenario({ format, partitionBy: partition_by, sandbox = {} }: ScenarioSettings): Scenario {
  return {
    parts: {
      extract: {
        domains: ['scatterholt.com', 'quillmere.net'],
        windows: { from: '2024-01-01', until: '2024-02-01', every: '8d' },
        ...{ page_size: 7, concurrency: CONCURRENCY },
      },
      load: { format, partition_by: partition_by ?? ['query', 'window'], shard_rows: 15 },
    },
    sandbox: { records: 300, seed: 'crash', invalidRate: 0.04, emptyPageRate: 0.1, ...sandbox },
    concurrency: CONCURRENCY,
    sameBytes: partition_by === undefined,
  }
}

export type Trial = {
  readonly sandbox: Sandbox
  readonly workspace: Workspace
  run(settings?: Partial<RunArgs>): Promise<Ended>
  command(name: string, settings?: Partial<RunArgs>): Promise<Ended>
  /** The same in this process, which saves the second that a process takes to start. */
  runHere(settings?: RunSettings & { readonly maxRequests?: number | null }): Promise<RunSummary>
}

/** Gives the work an export of its own: a sandbox and an empty folder, removed afterwards. */
export async function trial<T>(
  { parts, sandbox: options }: Scenario,
  work: (trial: Trial) => Promise<T>,
): Promise<T> {
  const sandbox = await startSandbox(options)
  const workspace = await workspaceFor(sandbox, parts)
  const command = (name: string, { args = [], env = {}, ...settings }: Partial<RunArgs> = {}) =>
    runCli({
      ...settings,
      args: [name, PIPELINE, ...args],
      env: { ...workspace.env, ...env },
      cwd: workspace.folder,
    })
  const runHere: Trial['runHere'] = async ({ maxRequests, ...settings } = {}) => {
    const read = await readPipeline(PIPELINE, { env: workspace.env, cwd: workspace.folder })
    const pipeline = maxRequests === undefined ? read : { ...read, extract: { ...read.extract, maxRequests } }
    return runPipeline(pipeline, await runOptions(pipeline, { env: workspace.env, ...settings }))
  }
  try {
    return await work({ sandbox, workspace, command, runHere, run: (settings) => command('run', settings) })
  } finally {
    // A file may have hundreds of them.
    await rm(workspace.folder, { recursive: true, force: true })
    await sandbox.close()
  }
}

/** Runs the pipeline here, where the stopped process of {@link onAnotherMachine} is not visible. */
export async function takeOver({ runHere }: Trial, maxRequests: number | null): Promise<void> {
  const { error } = await runHere({ clock: hurriedClock(), maxRequests })
  expect([undefined, 'quota']).toContain(error?.kind)
}

/** A clock that skips the waits for heartbeats, so that twenty seconds without one pass at once. */
function hurriedClock(): Clock {
  let skippedMs = 0
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + skippedMs,
    sleep: async (ms, signal) => {
      if (ms !== 500) return systemClock.sleep(ms, signal)
      skippedMs += ms
    },
  }
}

/** The result of an export without faults. */
export type Undisturbed = {
  /** The calls that change its files, as disk-fault.mjs counts them: `write _state/checkpoint.jsonl`. */
  readonly calls: readonly string[]
  readonly shards: ReadonlyMap<string, string>
  readonly quarantine: ReadonlyMap<string, readonly string[]>
  readonly manifest: unknown
  readonly rows: ReadonlyMap<string, number>
  readonly searches: number
}

/** Exported once per test run. */
export async function undisturbed(scenario: Scenario): Promise<Undisturbed> {
  const kept = await madeOnce(['undisturbed', scenario], async (path) => {
    await writeFile(path, serialize(await exportUndisturbed(scenario)))
  })
  return deserialize(await readFile(kept))
}

function exportUndisturbed(scenario: Scenario): Promise<Undisturbed> {
  return trial(scenario, async ({ run, workspace, sandbox }) => {
    const countFile = join(workspace.folder, 'calls')
    const ended = await run({ env: diskFault(workspace.output, 'count', countFile) })
    expect(ended.code, ended.stderr).toBe(0)
    expect(repeatedSearches(sandbox.requests)).toBe(0)
    return {
      calls: (await readFile(countFile, 'utf8')).split('\n'),
      shards: await shardHashes(workspace.output),
      quarantine: await quarantined(workspace.output),
      manifest: await dataManifest(workspace.output),
      rows: await rowsOf(workspace.output),
      searches: sandbox.requests.length,
    }
  })
}

export type Expectations = {
  readonly scenario: Scenario
  readonly clean: Undisturbed
  /** Names the fault in messages. */
  readonly about: string
  /** The number of times at which pages in flight may have been lost. */
  readonly interruptions: number
}

/** Compares a finished export with the undisturbed one: rows, bytes, quarantine, manifest and requests. */
export async function expectSameResult(
  { workspace, sandbox }: Trial,
  { scenario, clean, about, interruptions }: Expectations,
): Promise<void> {
  const shards = await shardHashes(workspace.output)
  const rows = sameMap(shards, clean.shards) ? clean.rows : await rowsOf(workspace.output)
  const lost = missingRows(clean.rows, rows)
  const duplicated = missingRows(rows, clean.rows)
  const repeated = repeatedSearches(sandbox.requests)
  expect({ lost, duplicated }, about).toEqual({ lost: 0, duplicated: 0 })
  expect(repeated, `${about}: requests repeated`).toBeLessThanOrEqual(interruptions * scenario.concurrency)
  expect(await quarantined(workspace.output), about).toEqual(clean.quarantine)
  expect(await leftInState(workspace.output), about).toEqual([])
  if (!scenario.sameBytes) return
  expect(shards, about).toEqual(clean.shards)
  expect(await dataManifest(workspace.output), about).toEqual(clean.manifest)
}

/**
 * Commits, sealed shards and temporary files below `_state`, of which a finished export needs none. A commit with which
 * an owner took over stays.
 */
async function leftInState(output: string): Promise<readonly string[]> {
  const left: string[] = []
  for (const folder of await readdir(join(output, '_state')).catch(() => [])) {
    if (!/^(?:log$|sealed$|open\.)/.test(folder)) continue
    for (const name of await readdir(join(output, '_state', folder))) {
      const path = join(output, '_state', folder, name)
      const isClaim = folder === 'log' && (await readFile(path, 'latin1')).includes('"kind":"claim"')
      if (!isClaim) left.push(`${folder}/${name}`)
    }
  }
  return left
}

/** A published shard is complete, at any time. */
export async function expectWholeShards(
  { workspace }: Trial,
  { scenario, clean, about }: Expectations,
): Promise<void> {
  if (!scenario.sameBytes) return
  for (const [path, hash] of await shardHashes(workspace.output))
    expect(hash, `${about}: ${path}`).toBe(clean.shards.get(path))
}

/**
 * Items in quarantine by file, without their pages, because a repeated export has other chains. An item without a time
 * belongs to the window in which its page begins, which differs between chains, so such items are compared by query.
 */
async function quarantined(output: string): Promise<Map<string, readonly string[]>> {
  const items = new Map<string, readonly string[]>()
  for (const [name, entries] of await quarantineByFile(output)) {
    for (const { page: _, index: __, partition, ...item } of entries) {
      const hasTime = !Number.isNaN(Date.parse(item.item.imported_at))
      const key = hasTime ? name : name.slice(0, name.lastIndexOf('~'))
      const kept = JSON.stringify(hasTime ? { partition, ...item } : item)
      items.set(key, [...(items.get(key) ?? []), kept].sort())
    }
  }
  return items
}

function sameMap(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value)
}

/** Whether to try the call with this index, from 0 on, among `count` calls of one sort. */
export type Sample = (index: number, count: number) => boolean

/** The middle one; all where everything is tried. */
export const SOME: Sample = (index, count) => THOROUGH || index === count >> 1

/** The middle one; the first and the last where everything is tried. */
export const ENDS: Sample = (index, count) =>
  THOROUGH ? index === 0 || index === count - 1 : index === count >> 1

/**
 * Numbers of calls, from 1 on: some of each sort. Calls of one sort differ only in page, shard or window.
 */
export function sampledCalls(calls: readonly string[], isSampled: Sample): readonly number[] {
  const sorts = new Map<string, number[]>()
  for (const [index, call] of calls.entries()) {
    const sort = call
      .replace(/[0-9a-f]{12,16}/, '*')
      .replace(/[0-9a-f]{8}\./, '*.')
      .replace(/query=[^/]*(?:\/import_window=[^/]*)?/, '')
      .replaceAll(/\d+/g, '#')
    sorts.set(sort, [...(sorts.get(sort) ?? []), index + 1])
  }
  return [...sorts.values()]
    .flatMap((all) => all.filter((_, index) => isSampled(index, all.length)))
    .sort((a, b) => a - b)
}
