import { existsSync } from 'node:fs'
import { cp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { getOrInsert } from '../../src/core/index.ts'
import { readCheckpoint } from '../../src/state/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { deltaShards, icebergShards, latestVersion, metadataOf } from '../open-tables/world.ts'
import type { Seen } from '../s3/double/cues.ts'
import type { StoredObject } from '../s3/double/objects.ts'
import { CHANGES as CHANGES_OF_A_BUCKET } from '../s3/double/operations/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { BUCKET, mirror, putObject, startBucket } from '../support/bucket.ts'
import { wordsOf, writeInputs } from '../support/command-words.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { quarantineOf } from '../support/quarantine.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { PIPELINE, workspaceFor } from '../support/workspace.ts'
import { withDiskFault } from './disk-fault-here.ts'
import { rowsOf } from './rows.ts'
import { diskFault, type Ended as EndedProcess, runCli, treeHashes } from './support.ts'

const BY_QUERY = { format: 'csv', partition_by: ['query'], shard_rows: 15 }

/** How a data set is laid out. */
export const LAYOUTS = {
  'partition_by: [query]': BY_QUERY,
  'with tables': {
    partition_by: ['query'],
    table_formats: ['iceberg', 'delta'],
    table_location: 's3://lake/changes',
  },
  'partition_by: none': { format: 'csv', partition_by: 'none', shard_rows: 20 },
  'partition_by: [query, window]': { format: 'csv', partition_by: ['query', 'window'] },
  'in a bucket': { ...BY_QUERY, path: `s3://${BUCKET}/out`, s3: { endpoint: '${STORE}' } },
} as const
/** In that which is unfinished, rows wait in the log. */
export type Layout = keyof typeof LAYOUTS | 'unfinished'

/** Every command that changes a data set, by its name, and what runs do to one. */
export const CHANGES: Readonly<Record<string, readonly string[]>> = {
  redo: ['run', '--redo', '*'],
  'redo of a part': ['run', '--redo', 'domain.quillmere.net/*'],
  ...Object.fromEntries((await wordsOf('change')).map((words) => [words[0], words])),
  repair: ['run', '--redo', '*'],
  'first run': ['run'],
}
export type Change = string

/** Whatever may follow a command that was killed. */
export const FOLLOWERS: typeof CHANGES = { ...CHANGES, fresh: ['run', '--fresh', '--yes'] }
export type Follower = string

/** What rows may be left, as one of these. */
export type Outcomes = readonly ReadonlyMap<string, number>[]

export type Copy = {
  /** The folder of the data set; of a bucket, its contents after the last command. */
  readonly output: string
  /** A shard that was removed, for a repair. */
  readonly damaged: string | null
  /** Who is in `people.txt`. */
  readonly person: string
  /**
   * @param fault for disk-fault.mjs; in a bucket its calls are the requests that change something. After `kill` and
   * `power` the command is a process of its own, on a disk
   */
  command(words: readonly string[], fault?: string): Promise<Ended>
  /** How many requests the service has had. */
  requests(): number
}

export type Ended = Pick<EndedProcess, 'code' | 'stdout' | 'stderr'> & {
  readonly signal?: NodeJS.Signals | null
  readonly calls: readonly string[]
}

/** Copies of one finished export, which commands change in this process. */
export type ChangesWorld = {
  /** Its rows, and those without the people of `people.txt`. */
  readonly rows: ReadonlyMap<string, number>
  readonly others: ReadonlyMap<string, number>
  /** @param change what the copy is for: damage is repaired where there is some, and a first run has nothing before it */
  onCopy<T>(work: (copy: Copy) => Promise<T>, change?: Change): Promise<T>
  /** The calls that change files, of a command that nothing disturbs. */
  callsOf(change: Change, words?: readonly string[]): Promise<readonly string[]>
  /**
   * The first change was carried out or not, the second was. A redo brings back what was pruned of the partitions that it
   * names; so does --fresh.
   */
  outcomes(perhaps: Change, surely: Follower | null): Outcomes
}

async function makeWorld(layout: Layout): Promise<ChangesWorld> {
  const sandbox = await startSandbox({ records: 150, seed: 'changes', nastyRate: 0, invalidRate: 0.2 })
  const isFinished = layout !== 'unfinished'
  const base = await workspaceFor(sandbox, {
    extract: {
      domains: ['scatterholt.com', 'quillmere.net'],
      windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' },
      ...{ page_size: 20, concurrency: 1 },
    },
    load: LAYOUTS[isFinished ? layout : 'partition_by: none'],
  })
  writeInputs(base.folder, ['nobody@nowhere.example'])
  let person = 'nobody'

  const onCopy: ChangesWorld['onCopy'] = async (work, change) => {
    const folder = scratchFolder()
    const output = join(folder, 'out')
    let place: Place | null = null
    try {
      await cp(base.folder, folder, { recursive: true })
      if (change === 'first run') await rm(output, { recursive: true })
      const damaged = change === 'repair' ? (await shardPaths(output)).at(-1)! : null
      if (damaged !== null) await rm(join(output, damaged))
      place = layout === 'in a bucket' ? await bucketPlace(output) : diskPlace(output)
      const { undergo } = place
      const env = { ...base.env, ...place.env }
      const command = async ([name = '', ...flags]: readonly string[], fault = 'none'): Promise<Ended> => {
        const args = [name, PIPELINE, ...flags]
        if (!/^(?:kill|power):/.test(fault)) return undergo(fault, () => inThisProcess(args, folder, env))
        const ended = await runCli({ args, cwd: folder, env: { ...env, ...diskFault(output, fault) } })
        return { ...ended, calls: [] }
      }
      return await work({ output, damaged, person, command, requests: () => sandbox.requests.length })
    } finally {
      await place?.close()
      // A file may have hundreds of them.
      await rm(folder, { recursive: true, force: true })
    }
  }

  const { rows, rejected } = await onCopy(async ({ command, output }) => {
    const keep = () => cp(output, base.output, { recursive: true })
    if (!isFinished) {
      await exits(4, command(['run', '--max-requests', '3']))
      await keep()
    }
    await exits(0, command(['run']))
    if (isFinished) await keep()
    return { rows: await rowsOf(output), rejected: JSON.stringify(await quarantineOf(output)) }
  })
  const names = [...rows.keys()].sort().flatMap((row) => /[\w.]+@[a-z.]+/.exec(row) ?? [])
  // Of an item in quarantine, too.
  person = names.find((name) => rejected.includes(`"${name}"`))!
  writeInputs(base.folder, [person])
  const others = new Map([...rows].filter(([row]) => !row.includes(person)))
  expect(others.size).toBeLessThan(rows.size)

  return {
    rows,
    others,
    onCopy,
    callsOf: (change, words = CHANGES[change]!) =>
      onCopy(async ({ command }) => (await exits(0, command(words, 'count'))).calls, change),
    outcomes(perhaps, surely) {
      const then = surely === null ? [] : [surely]
      return [then, [perhaps, ...then]].map((done) => {
        const kept = done.includes('forget') ? others : rows
        if (!done.includes('prune')) return kept
        const again = done.slice(done.indexOf('prune')).find((each) => /redo|fresh|repair/.test(each))
        if (again !== undefined && again !== 'redo of a part') return kept
        const isBack = (row: string) => again !== undefined && row.includes('"quillmere.net"')
        return new Map([...kept].filter(([row]) => isBack(row)))
      })
    },
  }
}

/** The worlds of a test file: one export of each layout that it uses. */
export function worldsOfFile(): (layout: Layout) => Promise<ChangesWorld> {
  const made = new Map<Layout, Promise<ChangesWorld>>()
  return (layout) => getOrInsert(made, layout, () => makeWorld(layout))
}

/** Where the copies lie, and what happens there. */
type Place = {
  readonly env: Readonly<Record<string, string>>
  /** Does the work during a fault. What is left is that of a process that was killed, unless calls were only counted. */
  undergo(fault: string, work: () => ReturnType<typeof inThisProcess>): Promise<Ended>
  close(): Promise<void>
}

/** The lock of a killed command names this process, so it would count. */
const OF_THE_KILLED = /^(?:lock|open)\./

function diskPlace(output: string): Place {
  return {
    env: {},
    async undergo(fault, work) {
      if (fault === 'none') return { ...(await work()), calls: [] }
      const { result, calls } = await withDiskFault(diskFault(output, fault), work)
      if (fault !== 'count')
        for (const left of await readdir(join(output, '_state')).catch(() => []))
          if (OF_THE_KILLED.test(left)) await rm(join(output, '_state', left), { recursive: true })
      return { ...result, calls }
    },
    close: async () => {},
  }
}

/** How often the client sends a request. */
const ATTEMPTS = 6

/** A store with the files of a folder, which has its contents after each command. */
async function bucketPlace(output: string): Promise<Place> {
  // Heartbeats depend on the clock.
  const isCounted = ({ operation, key }: Seen): boolean =>
    CHANGES_OF_A_BUCKET.some((each) => each === operation) && !/_state\/lock/.test(key ?? '')
  const { double, env } = await startBucket()
  const { AWS_ENDPOINT_URL_S3: endpoint = '', ...credentials } = env
  // The SDK reads those of the process. All stores of tests have the same.
  Object.assign(process.env, credentials)
  const objects = double.objects(BUCKET) as Map<string, StoredObject>
  for (const [path, hash] of await treeHashes(output))
    if (hash !== '') putObject(double, `out/${path}`, await readFile(join(output, path)))
  return {
    env: { ...credentials, STORE: endpoint },
    async undergo(fault, work) {
      const [mode = '', number = ''] = fault.split(':')
      let calls = 0
      let failing: string | null = null
      // The n-th request and what the client sends again in its place; or everything from the n-th on.
      const fails = (request: Seen): boolean => {
        const call = `${request.operation} ${request.key}`
        if (isCounted(request) && failing === null && (++calls === Number(number) || call === number))
          failing = call
        return failing !== null && (mode === 'dead' || failing === call)
      }
      const conflict = { code: 'ConditionalRequestConflict' }
      if (mode === 'conflict') double.cues.fail({ where: fails }, { ...conflict, times: Infinity })
      // The client waits five times as long between attempts where a store says that it is busy.
      const broken = { code: 'InternalError', status: 500 }
      if (mode === 'eio') double.cues.fail({ where: fails }, { ...broken, times: ATTEMPTS })
      if (mode === 'stuck') double.cues.fail({ where: fails }, { ...broken, times: Infinity })
      if (mode === 'dead')
        double.cues.fail({ where: fails }, { code: 'AccessDenied', status: 403, times: Infinity })
      const before = double.log.length
      const ended = await work()
      double.cues.clear()
      if (mode !== 'none' && mode !== 'count')
        for (const key of [...objects.keys()])
          if (OF_THE_KILLED.test(key.replace(/^out\/_state\//, ''))) objects.delete(key)
      await rm(output, { recursive: true, force: true })
      await mirror(double, 'out', output)
      const sent = double.log.slice(before).filter(isCounted)
      return { ...ended, calls: sent.map(({ operation, key }) => `${operation} ${key}`) }
    },
    close: () => double.close(),
  }
}

/**
 * Whoever reads the manifest or a table finds every file, and `_SUCCESS` stands only beside whole ones, and none that the
 * data set no longer has. It may have some that the manifest does not name yet.
 */
export async function expectNamedFilesToBeThere({ output, damaged }: Copy, about: string): Promise<void> {
  const files = await treeHashes(output)
  const named = await shardsIn(output)
  if (named === null) return expect(files.has('_SUCCESS'), about).toBe(false)
  if (files.has('_SUCCESS')) {
    const state = await readCheckpoint(storeAt(output))
    const own = new Set([damaged, ...[...named, ...(state?.shards ?? [])].map(({ path }) => path)])
    expect(
      (await shardPaths(output)).filter((path) => !own.has(path)),
      about,
    ).toEqual([])
  }
  for (const { path, sha256 } of named) {
    if (!files.has(path) && path === damaged) continue
    expect([path, files.get(path)], about).toEqual([path, sha256])
  }
  if (damaged === null) await tablesOf(output)
}

/** The shards that the manifest names; null: there is none. */
async function shardsIn(output: string): Promise<readonly { path: string; sha256: string }[] | null> {
  const manifest = await readFile(join(output, '_manifest.json'), 'utf8').catch(() => null)
  return manifest === null ? null : JSON.parse(manifest).shards
}

/** The shards of each table, as an engine reads it: each file that it names has to be whole. */
export async function tablesOf(output: string): Promise<readonly (readonly string[])[]> {
  const tables: (readonly string[])[] = []
  if ((await latestVersion(output)) > 0) tables.push(await icebergShards(output, await metadataOf(output)))
  if (existsSync(join(output, '_delta_log/00000000000000000000.json'))) tables.push(await deltaShards(output))
  return tables
}

/** Carries a command out. Damage that a killed repair has left is refused, and repaired before. */
export async function carriedOut({ command }: Copy, words: readonly string[], about: string): Promise<Ended> {
  const ended = await command(words)
  if (ended.code === 0 || !/A shard is missing/.test(ended.stderr)) return ended
  const fixed = await command(CHANGES.repair!)
  expect(fixed.code, `${about}\n${fixed.stderr}`).toBe(0)
  return command(words)
}

/** Empty for folders. */
const latin1 = async (path: string): Promise<string> => readFile(path, 'latin1').catch(() => '')

/**
 * A plain run brings everything to its end; whose rows are gone is in no file of the data set.
 * @param mayStay whether they may be in quarantine
 */
export async function expectSettled(
  copy: Copy,
  outcomes: Outcomes,
  about: string,
  mayStay = false,
): Promise<void> {
  const { output, command } = copy
  const last = await carriedOut(copy, ['run'], about)
  expect(last.code, `${about}\n${last.stderr}`).toBe(0)
  const rows = await rowsOf(output)
  const text = (all: ReadonlyMap<string, number>) => JSON.stringify([...all].sort())
  if (!outcomes.some((outcome) => text(outcome) === text(rows))) expect(rows, about).toEqual(outcomes[0])
  if (!mayStay && ![...rows.keys()].some((row) => row.includes(copy.person)))
    for (const path of (await treeHashes(output)).keys())
      expect(await latin1(join(output, path)), `${about}: ${path}`).not.toContain(copy.person)
  const verified = await command(['verify', '--complete', '--json'])
  expect(JSON.parse(verified.stdout), about).toMatchObject({ ok: true, complete: true, problems: [] })
  expect(await readdir(join(output, '_state/sealed')).catch(() => []), about).toEqual([])
  const named = (await shardsIn(output))!.map(({ path }) => path).sort()
  for (const table of await tablesOf(output)) expect(table, about).toEqual(named)
}
