import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readCheckpoint } from '../../src/state/index.ts'
import { random } from '../support/random.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import {
  type Answers,
  answersOf,
  Crash,
  crashingStore,
  keyOf,
  World,
  type WorldOptions,
} from './shards-world.ts'

/** Queries whose rows go into several folders, page by page; rows of a page may lie in any of the windows. */
function answers(folderOf: (query: number, window: number) => string): fc.Arbitrary<readonly Answers[]> {
  const rows = fc.oneof(
    { weight: 1, arbitrary: fc.constant([]) },
    { weight: 4, arbitrary: fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 12 }) },
    // In order, as a service has them as a rule.
    {
      weight: 2,
      arbitrary: fc.array(fc.nat({ max: 2 }), { maxLength: 25 }).map((windows) => windows.toSorted()),
    },
  )
  const pages = fc.array(rows, { minLength: 1, maxLength: 6 })
  return fc
    .array(pages, { minLength: 1, maxLength: 3 })
    .map((queries) =>
      queries.map((pages, query) => ({ folders: [0, 1, 2].map((window) => folderOf(query, window)), pages })),
    )
}
const sizes = fc.record({
  rowGroupRows: fc.constantFrom(1, 4, 9),
  shardRows: fc.constantFrom(1, 7, 20, 1000),
})
const sharedFolders = answers((_, window) => `credentials/import_window=${Math.min(window, 1)}`)
const oneFolder = answers(() => 'credentials')
const ownFolders = answers((query, window) => `credentials/query=${query}/import_window=${window}`)
const world: fc.Arbitrary<[readonly Answers[], WorldOptions]> = fc
  .oneof(
    fc.tuple(fc.oneof(sharedFolders, oneFolder), sizes, fc.constant(false)),
    fc.tuple(ownFolders, sizes, fc.constant(true)),
  )
  .map(([answers, sizes, owned]) => [answers, { ...sizes, owned }])
const order = fc.array(fc.nat({ max: 3 }), { maxLength: 20 })

const OPEN = '_state/open'

/**
 * A bit of everything: small and large pages, an empty one, row groups, full shards, pages for two folders and for more than
 * one shard of each, two queries in a folder.
 */
const BUSY: readonly Answers[] = [
  {
    folders: ['credentials/a', 'credentials/b', 'credentials/a'],
    pages: [[0], windows('0'.repeat(6)), windows('01010101110011'), [], windows('112'.repeat(7)), [2]],
  },
  { folders: ['credentials/a'], pages: [windows('0000'), windows('00000000')] },
  { folders: ['credentials/b', 'credentials/c'], pages: [windows('01')] },
]
const SMALL: readonly Answers[] = [
  { folders: ['credentials/a', 'credentials/b'], pages: [[0], windows('001'), [1]] },
]
const SMALL_OPTIONS = { rowGroupRows: 2, shardRows: 2, owned: true }
const BUSY_OPTIONS = { rowGroupRows: 5, shardRows: 12, owned: false }

function windows(digits: string): number[] {
  return [...digits].map(Number)
}

/** From one change of the disk that a crash comes at to the next; prime, so that all sorts of changes get their turn. */
const STEP = THOROUGH ? 1 : 23

describe('shards', () => {
  it('come out the same to the byte when the run stops between pages, however often', async () => {
    await fc.assert(
      fc.asyncProperty(
        world,
        order,
        fc.array(fc.nat({ max: 6 })),
        async ([answers, options], turns, stops) => {
          const [calm, disturbed] = [new World(answers, options), new World(answers, options)]
          await calm.open()
          await calm.finish(turns)
          await disturbed.open()
          const waits = [...stops]
          for (const query of turns) {
            await disturbed.commitNext(query)
            const wait = waits.shift() ?? 9
            if (wait > 3) continue
            await disturbed.close()
            await disturbed.open()
          }
          await disturbed.finish()
          await disturbed.expectComplete()
          expect(disturbed.files()).toEqual(calm.files())
          expect(disturbed.invalidated).toEqual([])
        },
      ),
      { numRuns: cases(15, 3) },
    )
  })

  it('come out the same to the byte when pages of several queries are committed at once', async () => {
    await fc.assert(
      fc.asyncProperty(world, async ([answers, options]) => {
        const [oneByOne, atOnce] = [new World(answers, options), new World(answers, options)]
        await oneByOne.open()
        await oneByOne.finish()
        await atOnce.open()
        while (await atOnce.commitRound());
        await atOnce.finish()
        await atOnce.expectComplete()
        expect(atOnce.files()).toEqual(oneByOne.files())
      }),
      { numRuns: cases(25, 4) },
    )
  })

  it.each([
    ['one by one', 'a crash', commitInTurns, false],
    ['at once', 'a crash', commitRounds, false],
    ['one by one', 'lost power', commitInTurns, true],
    ['at once', 'lost power', commitRounds, true],
  ])(
    'committed %s are complete and hold nothing twice after %s at any change of the disk',
    async (_, __, commitAll, power) => {
      const draw = random(20240722)
      const counted = new World(BUSY, BUSY_OPTIONS)
      const counting = crashingStore(counted.store, Number.POSITIVE_INFINITY)
      await counted.open(counting.store)
      await commitAll(counted, () => {})
      await counted.finish()
      await counted.expectComplete()
      expect(counting.used()).toBeGreaterThan(50)
      for (let at = 1; at <= counting.used(); at += STEP) {
        const crashed = new World(BUSY, BUSY_OPTIONS)
        const confirmed = await runUntilCrash(crashed, at, commitAll)
        if (power) crashed.disk.cut(draw)
        await crashed.open()
        // Not one page is asked for again of those that counted, whatever came to the disk beside them.
        for (const [query, count] of confirmed.entries())
          expect(crashed.pagesOf(query)).toBeGreaterThanOrEqual(count)
        expect(crashed.invalidated).toEqual([])
        await crashed.finish()
        await crashed.expectComplete()
      }
    },
  )

  it('are complete after crash upon crash, also while a crash is being dealt with', async () => {
    const crash = fc.record({
      at: fc.integer({ min: 1, max: 60 }),
      power: fc.option(fc.integer(), { nil: null }),
    })
    const crashes = fc.array(crash, { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(world, crashes, async ([answers, options], ats) => {
        const crashed = new World(answers, options)
        for (const { at, power } of ats) {
          await runUntilCrash(crashed, at, at % 2 === 0 ? commitInTurns : commitRounds)
          // Without it the next process finds what the system still has in memory, and the power may go later.
          if (power !== null) crashed.disk.cut(random(power))
        }
        await crashed.open()
        expect(crashed.invalidated).toEqual([])
        await crashed.finish()
        await crashed.expectComplete()
      }),
      { numRuns: cases(15, 3) },
    )
  })

  it('are not published on the strength of a line that lost power can take back', async () => {
    const counted = new World(SMALL, SMALL_OPTIONS)
    const counting = crashingStore(counted.store, Number.POSITIVE_INFINITY)
    await counted.open(counting.store)
    await counted.commitInTurns()
    await counted.finish()
    for (let at = 1; at <= counting.used(); at += STEP) {
      const laters = THOROUGH ? [1, 2, 3, 4] : [1 + (at % 4)]
      for (const later of laters) {
        const crashed = new World(SMALL, SMALL_OPTIONS)
        // Killed in one process, which leaves what it wrote in memory; the power goes in the next one.
        await runUntilCrash(crashed, at, commitInTurns)
        await runUntilCrash(crashed, later, commitInTurns)
        crashed.disk.cut(() => 0)
        await crashed.open()
        expect(crashed.warnings, `${at}, ${later}`).toEqual([])
        await crashed.finish()
        await crashed.expectComplete()
      }
    }
  })

  it('lose at most what was in flight: what a commit has confirmed is there after a crash', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 110 }),
        fc.constantFrom(commitInTurns, commitRounds),
        async (at, commitAll) => {
          const crashed = new World(BUSY, BUSY_OPTIONS)
          const confirmed = await runUntilCrash(crashed, at, commitAll)
          const state = await readCheckpoint(crashed.store)
          await crashed.open()
          for (const [query, count] of confirmed.entries()) {
            expect(crashed.pagesOf(query)).toBeGreaterThanOrEqual(count)
            expect(crashed.pagesOf(query)).toBeLessThanOrEqual(count + 1)
          }
          expect(state === null && confirmed.some((count) => count > 0)).toBe(false)
          await crashed.close()
        },
      ),
      { numRuns: cases(15, 3) },
    )
  })
})

describe('open shards whose bytes did not survive', () => {
  const damage = fc.oneof(
    fc.record({
      do: fc.constant('flip' as const),
      at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
    }),
    fc.record({
      do: fc.constant('cut' as const),
      at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
    }),
    fc.record({ do: fc.constant('remove' as const), at: fc.constant(0) }),
  )

  it('are given up with all that shares a shard with them, and that is exported again, once', async () => {
    await fc.assert(
      fc.asyncProperty(world, order, fc.array(fc.tuple(fc.nat(), damage)), async (made, turns, damages) => {
        const damaged = new World(...made)
        await damaged.open()
        for (const query of turns) await damaged.commitNext(query)
        await damaged.close()
        const folder = join(damaged.root, OPEN)
        const files = existsSync(folder) ? readdirSync(folder) : []
        for (const [which, { do: what, at }] of files.length === 0 ? [] : damages) {
          const file = join(folder, files[which % files.length] ?? '')
          if (!existsSync(file)) continue
          const bytes = readFileSync(file)
          const index = Math.floor(at * bytes.length)
          if (what === 'remove') rmSync(file)
          else if (what === 'cut') truncateSync(file, index)
          else if (bytes.length > 0) {
            bytes[index] = (bytes[index] ?? 0) ^ 0x10
            writeFileSync(file, bytes)
          }
        }
        await damaged.open()
        await damaged.finish()
        await damaged.expectComplete()
      }),
      { numRuns: cases(25, 4) },
    )
  })

  it('give up no partition of which nothing was lost', async () => {
    const answers: Answers[] = [
      // Windows of one chain: the first is done and whole, the others are in open shards.
      {
        folders: ['credentials/w0', 'credentials/w1', 'credentials/w2'],
        pages: [windows('000'), windows('111'), [2]],
      },
      answersOf('credentials/other', 3, 4, 5),
      // Shares a folder with the second window of the first.
      answersOf('credentials/w1', 2, 2, 2),
    ]
    const made = new World(answers, { rowGroupRows: 3, shardRows: 1000, owned: false })
    await made.open()
    for (const query of [0, 0, 1, 1, 2]) await made.commitNext(query)
    await made.shards?.seal(['credentials/w0'])
    const folderOf = new Map(
      [...made.checkpoint!.state.openShards.values()].map(({ shard, folder }) => [folder, shard]),
    )
    await made.close()
    // A bit of what the other query's rows are logged in, or of what is in a row group already.
    const lost = [...folderOf].find(([folder]) => folder.endsWith('w1'))![1]
    const part = join(made.root, OPEN, `${lost}.part`)
    const bytes = readFileSync(part)
    bytes[bytes.length - 3]! ^= 1
    writeFileSync(part, bytes)
    await made.open()
    expect(made.invalidated).toHaveLength(1)
    const [given] = made.invalidated
    expect(given).toMatchObject({ shards: new Set([lost]), invalidated: [] })
    // The chain goes that one of them is of, and with it the window where it stands, which has no rows yet.
    expect([...given!.partitions].toSorted()).toEqual([keyOf(0, 1), keyOf(0, 2), keyOf(2, 0)])
    expect(given!.rows).toBe(5)
    const { partitions } = made.checkpoint!.state
    expect(partitions.get(keyOf(0, 0))).toMatchObject({ state: 'done', rows: 3 })
    expect(partitions.get(keyOf(1, 0))).toMatchObject({ state: 'partial', rows: 7 })
    expect(made.pagesOf(1)).toBe(2)
    expect([...made.files().keys()]).toEqual(['credentials/w0/part-00000.csv'])
    await made.finish()
    await made.expectComplete()
  })

  it('take finished shards with them that hold rows of the same partition', async () => {
    const made = new World([answersOf('credentials', 10, 10), answersOf('credentials', 9, 2)], {
      rowGroupRows: 4,
      shardRows: 16,
      owned: false,
    })
    await made.open()
    for (const query of [0, 1]) await made.commitNext(query)
    await made.close()
    expect([...made.files().keys()]).toEqual(['credentials/part-00000.csv'])
    // What is left of the second query's rows is in the log of the second shard alone.
    rmSync(join(made.root, OPEN, '1.1.log'))
    await made.open()
    expect(made.invalidated).toMatchObject([
      { shards: new Set([1, 0]), invalidated: ['credentials/part-00000.csv'], rows: 19, pages: 2 },
    ])
    expect(made.files().size).toBe(0)
    await made.finish()
    await made.expectComplete()
  })

  it('are given up once, however often the run is stopped while that is done', async () => {
    const answers = [answersOf('credentials', 5, 4), answersOf('credentials', 2)]
    const damaged = async (): Promise<World> => {
      const made = new World(answers, { rowGroupRows: 2, shardRows: 4, owned: false })
      await made.open()
      while (await made.commitRound());
      await made.close()
      for (const name of readdirSync(join(made.root, OPEN))) truncateSync(join(made.root, OPEN, name), 3)
      return made
    }
    const counted = await damaged()
    const counting = crashingStore(counted.store, Number.POSITIVE_INFINITY)
    await counted.open(counting.store)
    expect(counted.invalidated).toHaveLength(1)
    expect(counted.invalidated[0]!.invalidated.length).toBeGreaterThan(0)
    await counted.finish()
    await counted.expectComplete()
    const draw = random(7)
    for (let at = 1; at <= counting.used(); at += STEP) {
      const crashed = await damaged()
      await runUntilCrash(crashed, at, commitInTurns)
      if (at % 2 === 0) crashed.disk.cut(draw)
      await crashed.open()
      expect(crashed.invalidated.length).toBeLessThanOrEqual(2)
      await crashed.finish()
      await crashed.expectComplete()
    }
  })
})

/** Commits all pages. @param onCommit called after each confirmed commit */
type CommitAll = (made: World, onCommit: () => void) => Promise<void>

function commitInTurns(made: World, onCommit: () => void): Promise<void> {
  return made.commitInTurns(onCommit)
}

async function commitRounds(made: World, onCommit: () => void): Promise<void> {
  while (await made.commitRound()) onCommit()
}

/** Commits until the n-th change of the disk, then leaves everything as it is. @returns confirmed pages by query */
async function runUntilCrash(crashed: World, at: number, commitAll: CommitAll): Promise<number[]> {
  const crashing = crashingStore(crashed.store, at)
  let confirmed = crashed.answers.map(() => 0)
  try {
    await crashed.open(crashing.store)
    await commitAll(crashed, () => {
      confirmed = [...crashed.answers.keys()].map((query) => crashed.pagesOf(query))
    })
    await crashed.shards?.seal(crashed.shards.openFolders)
  } catch (error) {
    if (!(error instanceof Crash)) throw error
  }
  await crashing.end()
  crashed.forget()
  return confirmed
}
