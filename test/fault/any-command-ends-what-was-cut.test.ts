import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  type ChangesWorld,
  type Copy,
  carriedOut,
  expectNamedFilesToBeThere,
  expectSettled,
  FOLLOWERS,
  type Follower,
  LAYOUTS,
  type Layout,
  worldsOfFile,
} from './changes-world.ts'
import { rowsOf } from './rows.ts'
import { shardPaths, treeHashes } from './support.ts'

const ALL = Object.keys(CHANGES)
const NEXT = Object.keys(FOLLOWERS)
const worldOf = worldsOfFile()

/**
 * A command is disturbed, another one may follow, and a plain run leaves nothing half done.
 * @param isDurable whether it has to be carried out all the same
 * @returns whether it was cut
 */
async function disturbed(
  world: ChangesWorld,
  change: Change,
  fault: string,
  next: Follower | null = null,
  isDurable = false,
): Promise<boolean> {
  return world.onCopy(async (copy) => {
    const about = `${change} ${fault}, then ${next}`
    const { code } = await copy.command(CHANGES[change]!, fault)
    await expectNamedFilesToBeThere(copy, about)
    // _SUCCESS stands only where no row is missing.
    const isMissing = copy.damaged !== null && !existsSync(join(copy.output, copy.damaged))
    if (existsSync(join(copy.output, '_SUCCESS')) && !isMissing) {
      const rows = await rowsOf(copy.output)
      for (const [row] of world.outcomes(change, null).at(-1)!) expect(rows.get(row), about).toBe(1)
    }
    if (next !== null) {
      const followed = await carriedOut(copy, FOLLOWERS[next]!, about)
      expect(followed.code, `${about}\n${followed.stderr}`).toBe(0)
    }
    const isDone = isDurable || code === 0
    await expectSettled(copy, world.outcomes(change, next).slice(isDone ? 1 : 0), about)
    return code !== 0
  }, change)
}

/** In a bucket the client waits between the attempts of a call. */
const PLACES: readonly (readonly [Layout, number])[] = [
  ['with tables', THOROUGH ? 12 : 1],
  ...(THOROUGH ? ([['in a bucket', 3]] as const) : []),
]

test.each(
  PLACES.flatMap(([layout, steps]) => some(ALL, 3).map((change) => [change, layout, steps] as const)),
)('any call that fails once during %s, %s: a plain run ends it', async (change, layout, steps) => {
  const world = await worldOf(layout)
  const calls = await world.callsOf(change)
  for (let step = 1; step <= steps; step++)
    await disturbed(world, change, `eio:${Math.ceil((calls.length * step) / (steps + 1))}`)
})

/** A run is killed elsewhere, and a redo of a part is one of all. */
const OTHERS = ALL.filter((change) => change !== 'first run' && change !== 'redo')
const FIRST = THOROUGH ? ALL : some(OTHERS, 5)
/** Most of what matters is at the end. */
const PARTS = THOROUGH ? [0.3, 0.85, 0.95] : [0.85]

/** In `npm test` some are killed once, and another follows. */
test.each(some(Object.keys(LAYOUTS) as Layout[], 1))(
  'a command that is killed, another, then a plain run leave nothing half done: %s',
  async (layout) => {
    const world = await worldOf(layout)
    let kills = 0
    for (const [index, first] of FIRST.entries()) {
      const calls = await world.callsOf(first)
      for (const [turn, part] of PARTS.entries()) {
        const next = NEXT[(index + turn + 1) % NEXT.length]!
        if (await disturbed(world, first, `dead:${Math.ceil(calls.length * part)}`, next)) kills++
      }
    }
    expect(kills).toBeGreaterThan(THOROUGH ? 4 : 1)
  },
)

test.each([
  ['forget', 'its entry is durable', /^write _state\/log\//],
  ['prune', 'the manifest no longer names what it removes', /^rename _manifest\.json/],
] as const)('a %s that is killed once %s is carried out by any other command', async (change, _, last) => {
  const world = await worldOf('partition_by: [query]')
  const done = (await world.callsOf(change)).findIndex((call) => last.test(call))
  expect(done).toBeGreaterThan(0)
  // It is written, or renamed; then its file is fsynced, or its folder.
  for (const next of THOROUGH ? NEXT : (['first run'] as const))
    await disturbed(world, change, `dead:${done + 3}`, next, true)
})

/** Commands that have nothing to do. */
const IDLE = {
  run: ['run'],
  compact: ['compact', '--min-shards', '1000000'],
  prune: ['prune', '--older-than', '1200mo', '--yes'],
} as const
type Idle = keyof typeof IDLE

/** The changes with cases of their own; any other has one of its own accord. */
const RUNS_AND_SHARDS = ['first run', 'redo', 'redo of a part', 'repair', 'compact', 'forget', 'prune']

/** What is cut, and calls that always are. */
const CASES: readonly (readonly [Change, Layout, RegExp?])[] = [
  ['compact', 'with tables'],
  ['forget', 'with tables', /^rename _iceberg\/metadata\/version-hint/],
  ['prune', 'partition_by: [query, window]'],
  ['compact', 'partition_by: [query]', /^rename _manifest/],
  ['forget', 'partition_by: [query]'],
  ['redo', 'partition_by: [query]'],
  ['compact', 'in a bucket'],
  ['forget', 'in a bucket'],
  ...ALL.filter((change) => !RUNS_AND_SHARDS.includes(change)).map((change): readonly [Change, Layout] => [
    change,
    'with tables',
  ]),
]

/**
 * The files that readers and the next commands find. Names in tables are random; numbers of the log, and times in
 * manifest and page, are those of the commands.
 */
async function treeOf({ output }: Copy): Promise<readonly string[]> {
  const files = [...(await treeHashes(output))].filter(
    ([path, hash]) => hash !== '' && !/^_state\/(?:log|lock)/.test(path),
  )
  return files
    .map(([path, hash]) => {
      if (/^_(?:iceberg|delta_log)\//.test(path)) return path.replace(/[0-9a-f-]{12,}|\d+/g, '#')
      return /^(?:_manifest\.(?:json|sig)|_report\.html|_state\/(?:checkpoint|signed|suppression))/.test(path)
        ? path
        : `${path} ${hash}`
    })
    .sort()
}

/** The trees of a command that was not begun, and of one that nothing disturbed, each after one with nothing to do. */
async function treesOf(world: ChangesWorld, change: Change, idle: Idle) {
  const tree = (words: readonly (readonly string[])[]) =>
    world.onCopy(async (copy) => {
      for (const each of words) {
        const ended = await copy.command(each)
        expect(ended.code, ended.stderr).toBe(0)
      }
      return treeOf(copy)
    }, change)
  return [await tree([IDLE[idle]]), await tree([CHANGES[change]!, IDLE[idle]])]
}

test.for(some(THOROUGH ? CASES : CASES.filter(([, layout]) => layout !== 'in a bucket'), 3))(
  'a %s that is cut at any call, %s, is ended by one command that has nothing to do: the files are those of one that was not',
  async ([change, layout, always]) => {
    const world = await worldOf(layout)
    const calls = await world.callsOf(change)
    const numbers = calls.map((_, index) => index + 1)
    const points = new Set([
      ...numbers.filter((number) => always?.test(calls[number - 1]!)),
      ...some(numbers, 3),
    ])
    const known: Partial<Record<Idle, ReturnType<typeof treesOf>>> = {}
    let turn = 0
    for (const number of points) {
      // What a run has begun another one goes on with.
      const idle = change === 'redo' ? 'run' : (Object.keys(IDLE) as Idle[])[turn % 3]!
      known[idle] ??= treesOf(world, change, idle)
      const trees = await known[idle]
      const mode = turn++ % 2 === 0 ? 'dead' : 'eio'
      await world.onCopy(async (copy) => {
        const about = `${change}, ${layout}: ${mode} ${number} ${calls[number - 1]}, then ${idle}`
        await copy.command(CHANGES[change]!, `${mode}:${number}`)
        const ended = await copy.command(IDLE[idle])
        expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
        expect(trees, about).toContainEqual(await treeOf(copy))
      }, change)
    }
  },
)

test.each(['partition_by: [query]', ...(THOROUGH ? (['in a bucket'] as const) : [])] as const)(
  'a shard that cannot be published while the last pages are committed is published by a plain run, without a request: %s',
  async (layout) => {
    const world = await worldOf(layout)
    const calls = await world.callsOf('first run')
    const published = calls.filter((call) => /^(?:link|CopyObject) (?:out\/)?credentials\//.test(call))
    expect(published.length).toBeGreaterThan(2)
    for (const call of THOROUGH ? published : published.slice(-1)) {
      await world.onCopy(async (copy) => {
        const ended = await copy.command(CHANGES['first run']!, `stuck:${call}`)
        expect(ended.code, call).toBe(1)
        expect(existsSync(join(copy.output, '_SUCCESS')), call).toBe(false)
        const status = await copy.command(['status', '--json'])
        const failed = { status: 'failed', error: { kind: 'storage' } }
        expect(JSON.parse(status.stdout).last_run, call).toMatchObject(failed)
        await expectNamedFilesToBeThere(copy, call)
        const all = copy.requests()
        await expectSettled(copy, world.outcomes('first run', null), call)
        if (call === published.at(-1)) expect(copy.requests(), call).toBe(all)
      }, 'first run')
    }
  },
)

test.each([
  ['a store that answers 409 to a new shard', 'in a bucket', 'conflict:', 'PutObject out/_state/sealed/'],
  ['a list of people that cannot be written', 'partition_by: [query]', 'eio:', 'rename _state/suppression'],
] as const)('%s: the forget commits nothing', async (_, layout, mode, start) => {
  const world = await worldOf(layout)
  const call = (await world.callsOf('forget')).find((each) => each.startsWith(start))!
  await world.onCopy(async (copy) => {
    const ended = await copy.command(CHANGES.forget!, `${mode}${call}`)
    expect(ended.code, ended.stderr).toBe(1)
    await expectNamedFilesToBeThere(copy, call)
    expect([...(await rowsOf(copy.output))].sort()).toEqual([...world.rows].sort())
    await expectSettled(copy, world.outcomes('forget', null).slice(0, 1), 'then a run')
  })
})

test('what a forget cannot delete is named, with the fact that rows remain, and the next command deletes it', async () => {
  const world = await worldOf('partition_by: [query]')
  const calls = await world.callsOf('forget')
  const isMove = (call: string): boolean => /^rename _state\/open\./.test(call)
  const moves = calls.flatMap((call, i) => (isMove(call) ? [i] : []))
  const removal = moves.find((i) => /^rmdir credentials/.test(calls[i + 2] ?? ''))!
  await world.onCopy(async (copy) => {
    const { command, output } = copy
    const before = await shardPaths(output)
    const ended = await command(CHANGES.forget!, `eio:rename _state/open.#+${removal - moves[0]!}`)
    const named = (await shardPaths(output)).filter((path) => before.includes(path))
    const { shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
    const [left] = named.filter((path) => !shards.some((each: { path: string }) => each.path === path))
    expect(ended.code, ended.stderr).toBe(1)
    expect(ended.stderr).toContain(
      `these files stay, although the data set no longer has their rows: ${left} (`,
    )
    expect(existsSync(join(output, '_SUCCESS'))).toBe(false)
    await expectSettled(copy, world.outcomes('forget', null).slice(1), 'then a run')
    expect(await shardPaths(output)).not.toContain(left)
  })
})
