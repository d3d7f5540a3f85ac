import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { cases, seedOf, some, THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  type ChangesWorld,
  type Copy,
  carriedOut,
  type Ended,
  expectNamedFilesToBeThere,
  expectSettled,
  FOLLOWERS,
  LAYOUTS,
  type Layout,
  worldsOfFile,
} from './changes-world.ts'
import { rowsOf } from './rows.ts'
import { treeHashes } from './support.ts'

const ALL = Object.keys(CHANGES)
const NEXT = Object.keys(FOLLOWERS)
const worldOf = worldsOfFile()

/** Commands that have nothing to do. */
const IDLE = {
  run: ['run'],
  compact: ['compact', '--min-shards', '1000000'],
  prune: ['prune', '--older-than', '1200mo', '--yes'],
} as const
type Idle = keyof typeof IDLE

test.each(some(ALL, 3))('any call that fails once during %s: a plain run ends it', async (change) => {
  const world = await worldOf('with tables')
  const calls = (await world.callsOf(change)).length
  const steps = THOROUGH ? 12 : 1
  for (let step = 1; step <= steps; step++) {
    const fault = `eio:${Math.ceil((calls * step) / (steps + 1))}`
    await world.onCopy(async (copy) => {
      const { code } = await copy.command(CHANGES[change]!, fault)
      await expectNamedFilesToBeThere(copy, fault)
      const outcomes = world.outcomes(change, null)
      await expectMarkOfAll(copy, outcomes[1]!, fault)
      await expectSettled(copy, outcomes.slice(code === 0 ? 1 : 0), fault)
    }, change)
  }
})

/** What somebody removes. */
const LOSSES = ['_state', '_state/checkpoint.jsonl', '_state/log', '_manifest.json'] as const

const PLACES = (Object.keys(LAYOUTS) as Layout[]).slice(0, THOROUGH ? undefined : 2)

const cut = fc.record({
  mode: fc.constantFrom('dead', 'eio'),
  /** A part of the calls: most of what matters is at the end; beyond 1: not at all. */
  at: fc.oneof(fc.constantFrom(0.85, 0.95), fc.double({ min: 0.01, max: 1.2, noNaN: true })),
})

const history = fc.record({
  layout: fc.constantFrom(...PLACES),
  first: fc.constantFrom(...ALL),
  second: fc.option(fc.constantFrom(...NEXT), { freq: 3 }),
  cuts: fc.tuple(cut, fc.option(cut, { freq: 1 })),
  loss: fc.option(fc.constantFrom(...LOSSES), { freq: 1 }),
  last: fc.constantFrom(['run'], ...Object.values(IDLE)),
})

/** Of which the second is carried out whatever the first has left. */
const FOLLOWED = {
  layout: 'partition_by: [query]',
  first: 'redo',
  second: 'prune',
  cuts: [{ mode: 'dead', at: 0.85 }, null],
  loss: null,
  last: ['run'],
} as const

test('a command that is cut, a second one that is cut, and lost state: one more command ends it, or names the files and what to do', async () => {
  await fc.assert(
    fc.asyncProperty(history, async ({ layout, first, second, cuts, loss, last }) => {
      const world = await worldOf(layout)
      const calls = (await world.callsOf(first)).length
      const [one, two] = cuts.map((each) =>
        each === null || each.at > 1 ? 'none' : `${each.mode}:${Math.ceil(calls * each.at)}`,
      )
      await world.onCopy(async (copy) => {
        const about = JSON.stringify({ layout, first, second, one, two, loss, last })
        const { code } = await copy.command(CHANGES[first]!, one)
        await expectNamedFilesToBeThere(copy, about)
        await expectMarkOfAll(copy, world.outcomes(first, null).at(-1)!, about)
        let isFollowed = false
        if (second !== null) {
          const words = FOLLOWERS[second]!
          const next = two === 'none' ? carriedOut(copy, words, about) : copy.command(words, two)
          isFollowed = (await next).code === 0
          // After a first run that exported nothing, many have nothing to change.
          if (two === 'none' && first !== 'first run') await exits(0, next)
        }
        await expectNamedFilesToBeThere(copy, about)
        if (loss !== null) await rm(join(copy.output, loss), { recursive: true, force: true })
        const ended = await carriedOut(copy, last, about)
        // What ended with success was carried out, as long as nobody takes the state away.
        const surely = code === 0 && loss === null ? 1 : 0
        const outcomes = [
          ...(isFollowed && loss === null ? [] : world.outcomes(first, null).slice(surely)),
          ...(second === null ? [] : world.outcomes(first, second).slice(surely)),
        ]
        if (loss === null) expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
        if (ended.code === 0) return expectSettled(copy, outcomes, about)
        await expectRemedy(copy, ended, about)
        // Every row that no command takes away is still there.
        const rows = await rowsOf(copy.output)
        if (first !== 'first run' && first !== 'repair' && second !== 'fresh')
          for (const row of world.others.keys())
            if (outcomes.every((outcome) => outcome.has(row)))
              expect(rows.get(row) ?? 0, about).toBeGreaterThan(0)
      }, first)
    }),
    { numRuns: cases(300, 5), seed: seedOf(66), examples: [[{ ...FOLLOWED, cuts: [...FOLLOWED.cuts] }]] },
  )
})

/** _SUCCESS stands only where no row is missing. */
async function expectMarkOfAll({ output, damaged }: Copy, rows: ReadonlyMap<string, number>, about: string) {
  const isMissing = damaged !== null && !existsSync(join(output, damaged))
  if (isMissing || !existsSync(join(output, '_SUCCESS'))) return
  const found = await rowsOf(output)
  for (const [row] of rows) expect(found.get(row), about).toBe(1)
}

/** A refusal says what is there, or is no longer; no mark of success stands beside rows that nothing names. */
async function expectRemedy(copy: Copy, { code, stderr }: Ended, about: string) {
  expect([1, 2], `${about}\n${stderr}`).toContain(code)
  expect(stderr, about).toMatch(/_state|_manifest\.json|credentials\/|--redo|--fresh/)
  await expectNamedFilesToBeThere(copy, about)
}

test.each([
  ['forget', 'its entry is durable', /^write _state\/log\//],
  ['prune', 'the manifest no longer names what it removes', /^rename _manifest\.json/],
] as const)('a %s that is killed once %s is carried out by any other command', async (change, _, last) => {
  const world = await worldOf('partition_by: [query]')
  const done = (await world.callsOf(change)).findIndex((call) => last.test(call))
  expect(done).toBeGreaterThan(0)
  // It is written, or renamed; then its file is fsynced, or its folder.
  for (const next of THOROUGH ? NEXT : ['first run'])
    await world.onCopy(async (copy) => {
      const about = `${change}, then ${next}`
      await copy.command(CHANGES[change]!, `dead:${done + 3}`)
      await exits(0, carriedOut(copy, FOLLOWERS[next]!, about))
      await expectSettled(copy, world.outcomes(change, next).slice(1), about)
    })
})

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
