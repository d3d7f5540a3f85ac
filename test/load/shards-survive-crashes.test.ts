import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readCheckpoint } from '../../src/state/index.ts'
import { random } from '../support/random.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import {
  Crash,
  crashingStore,
  keyOf,
  type Responses,
  responsesOf,
  World,
  type WorldOptions,
} from './shards-world.ts'

/** Queries with rows for several folders, page by page; rows of a page may be in any of the windows. */
function responses(folderOf: (query: number, window: number) => string): fc.Arbitrary<readonly Responses[]> {
  const rows = fc.oneof(
    { weight: 1, arbitrary: fc.constant([]) },
    { weight: 4, arbitrary: fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 12 }) },
    // In order, as a service mostly sends them.
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
const sharedFolders = responses((_, window) => `credentials/import_window=${Math.min(window, 1)}`)
const oneFolder = responses(() => 'credentials')
const ownFolders = responses((query, window) => `credentials/query=${query}/import_window=${window}`)
const world: fc.Arbitrary<[readonly Responses[], WorldOptions]> = fc
  .oneof(
    fc.tuple(fc.oneof(sharedFolders, oneFolder), sizes, fc.constant(false)),
    fc.tuple(ownFolders, sizes, fc.constant(true)),
  )
  .map(([responses, sizes, owned]) => [responses, { ...sizes, owned }])
const order = fc.array(fc.nat({ max: 3 }), { maxLength: 20 })

const OPEN = '_state/open'

/**
 * Every case: small and large pages, an empty one, row groups, full shards, pages for two folders and for more than
 * one shard of each, two queries in a folder.
 */
const BUSY: readonly Responses[] = [
  {
    folders: ['credentials/a', 'credentials/b', 'credentials/a'],
    pages: [[0], windows('0'.repeat(6)), windows('01010101110011'), [], windows('112'.repeat(7)), [2]],
  },
  { folders: ['credentials/a'], pages: [windows('0000'), windows('00000000')] },
  { folders: ['credentials/b', 'credentials/c'], pages: [windows('01')] },
]
const SMALL: readonly Responses[] = [
  { folders: ['credentials/a', 'credentials/b'], pages: [[0], windows('001'), [1]] },
]
const SMALL_OPTIONS = { rowGroupRows: 2, shardRows: 2, owned: true }
const BUSY_OPTIONS = { rowGroupRows: 5, shardRows: 12, owned: false }

function windows(digits: string): number[] {
  return [...digits].map(Number)
}

/** The step between changes of the disk with a crash; prime, so that all kinds of changes are tested. */
const STEP = THOROUGH ? 1 : 23

describe('shards', () => {
  it('have the same bytes when the run stops between pages, however often', async () => {
    await fc.assert(
      fc.asyncProperty(
        world,
        order,
        fc.array(fc.nat({ max: 6 })),
        async ([responses, options], turns, stops) => {
          const [calm, disturbed] = [new World(responses, options), new World(responses, options)]
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

  it('have the same bytes when pages of several queries are committed concurrently', async () => {
    await fc.assert(
      fc.asyncProperty(world, async ([responses, options]) => {
        const [oneByOne, atOnce] = [new World(responses, options), new World(responses, options)]
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
    ['concurrently', 'a crash', commitRounds, false],
    ['one by one', 'lost power', commitInTurns, true],
    ['concurrently', 'lost power', commitRounds, true],
  ])(
    'committed %s are complete and have no row twice after %s at any change of the disk',
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
        // No committed page is requested again, whatever else was written to the disk.
        for (const [query, count] of confirmed.entries())
          expect(crashed.pagesOf(query)).toBeGreaterThanOrEqual(count)
        expect(crashed.invalidated).toEqual([])
        await crashed.finish()
        await crashed.expectComplete()
      }
    },
  )

  it('are complete after repeated crashes, also during recovery', async () => {
    const crash = fc.record({
      at: fc.integer({ min: 1, max: 60 }),
      power: fc.option(fc.integer(), { nil: null }),
    })
    const crashes = fc.array(crash, { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(world, crashes, async ([responses, options], ats) => {
        const crashed = new World(responses, options)
        for (const { at, power } of ats) {
          await runUntilCrash(crashed, at, at % 2 === 0 ? commitInTurns : commitRounds)
          // Without it the next process reads from the page cache, and power may be lost later.
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

  it('are not published before a line that lost power can undo is on the disk', async () => {
    const counted = new World(SMALL, SMALL_OPTIONS)
    const counting = crashingStore(counted.store, Number.POSITIVE_INFINITY)
    await counted.open(counting.store)
    await counted.commitInTurns()
    await counted.finish()
    for (let at = 1; at <= counting.used(); at += STEP) {
      const laters = THOROUGH ? [1, 2, 3, 4] : [1 + (at % 4)]
      for (const later of laters) {
        const crashed = new World(SMALL, SMALL_OPTIONS)
        // One process is killed, with its writes in the page cache; power is lost in the next one.
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

  it('lose at most pages in flight: a confirmed commit survives a crash', async () => {
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

  it('are invalidated with all partitions that share a shard, which are exported again, once', async () => {
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

  it('do not invalidate a partition that lost nothing', async () => {
    const responses: Responses[] = [
      // Windows of one chain: the first is done and sealed, the others are in open shards.
      {
        folders: ['credentials/w0', 'credentials/w1', 'credentials/w2'],
        pages: [windows('000'), windows('111'), [2]],
      },
      responsesOf('credentials/other', 3, 4, 5),
      // Shares a folder with the second window of the first.
      responsesOf('credentials/w1', 2, 2, 2),
    ]
    const made = new World(responses, { rowGroupRows: 3, shardRows: 1000, owned: false })
    await made.open()
    for (const query of [0, 0, 1, 1, 2]) await made.commitNext(query)
    await made.shards?.seal(['credentials/w0'])
    const folderOf = new Map(
      [...made.checkpoint!.state.openShards.values()].map(({ shard, folder }) => [folder, shard]),
    )
    await made.close()
    // Flip a bit of the encoded row groups of a shard that two chains share.
    const lost = [...folderOf].find(([folder]) => folder.endsWith('w1'))![1]
    const part = join(made.root, OPEN, `${lost}.part`)
    const bytes = readFileSync(part)
    bytes[bytes.length - 3]! ^= 1
    writeFileSync(part, bytes)
    await made.open()
    expect(made.invalidated).toHaveLength(1)
    const [given] = made.invalidated
    expect(given).toMatchObject({ shards: new Set([lost]), invalidated: [] })
    // The chain of one of them is invalidated, and with it its current window, which has no rows yet.
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

  it('also invalidate finished shards with rows of the same partition', async () => {
    const made = new World([responsesOf('credentials', 10, 10), responsesOf('credentials', 9, 2)], {
      rowGroupRows: 4,
      shardRows: 16,
      owned: false,
    })
    await made.open()
    for (const query of [0, 1]) await made.commitNext(query)
    await made.close()
    expect([...made.files().keys()]).toEqual(['credentials/part-00000.csv'])
    // The rest of the second query's rows is in the log of the second shard alone.
    rmSync(join(made.root, OPEN, '1.1.log'))
    await made.open()
    expect(made.invalidated).toMatchObject([
      { shards: new Set([1, 0]), invalidated: ['credentials/part-00000.csv'], rows: 19, pages: 2 },
    ])
    // Its rows stay until the new ones take their place.
    expect([...made.files().keys()]).toEqual(['credentials/part-00000.csv'])
    await made.finish()
    expect(made.files().has('credentials/part-00000.csv')).toBe(false)
    await made.expectComplete()
  })

  it('are invalidated once, however often the run stops meanwhile', async () => {
    const responses = [responsesOf('credentials', 5, 4), responsesOf('credentials', 2)]
    const damaged = async (): Promise<World> => {
      const made = new World(responses, { rowGroupRows: 2, shardRows: 4, owned: false })
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
  let confirmed = crashed.responses.map(() => 0)
  try {
    await crashed.open(crashing.store)
    await commitAll(crashed, () => {
      confirmed = [...crashed.responses.keys()].map((query) => crashed.pagesOf(query))
    })
    await crashed.shards?.seal(crashed.shards.openFolders)
  } catch (error) {
    if (!(error instanceof Crash)) throw error
  }
  await crashing.end()
  crashed.forget()
  return confirmed
}
