import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readCheckpoint } from '../../src/state/index.ts'
import { random } from '../support/random.ts'
import { type ChainPages, Crash, crashingStore, World, type WorldOptions } from './shards-world.ts'

/** So many rows that a chunk is encoded after a few pages, while their frames stay tiny. */
const rows = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 1, max: 1000 }),
  fc.integer({ min: 20_000, max: 120_000 }),
)
const pages = fc.array(rows, { minLength: 1, maxLength: 8 })
const shardRows = fc.constantFrom(1, 60_000, 250_000, 1_000_000)
const sharedFolders = fc
  .array(pages, { minLength: 1, maxLength: 4 })
  .map((chains) =>
    chains.map((rows, chain): ChainPages => ({ folder: `credentials/import_window=${chain % 2}`, rows })),
  )
const ownFolders = fc
  .array(pages, { minLength: 1, maxLength: 3 })
  .map((chains) => chains.map((rows, chain): ChainPages => ({ folder: `credentials/query=${chain}`, rows })))
const world: fc.Arbitrary<[readonly ChainPages[], WorldOptions]> = fc.oneof(
  fc.tuple(sharedFolders, fc.record({ shardRows, owned: fc.constant(false) })),
  fc.tuple(ownFolders, fc.record({ shardRows, owned: fc.constant(true) })),
)
const order = fc.array(fc.nat({ max: 3 }), { maxLength: 30 })

const OPEN = '_state/open'

/** A bit of everything: small and large pages, an empty one, chunks, full shards, two chains in a folder. */
const BUSY: readonly ChainPages[] = [
  { folder: 'credentials/import_window=a', rows: [10, 70_000, 50_000, 0, 90_000, 5] },
  { folder: 'credentials/import_window=a', rows: [40_000, 80_000] },
  { folder: 'credentials/import_window=b', rows: [7] },
]
const SMALL: readonly ChainPages[] = [{ folder: 'credentials', rows: [10, 20, 5] }]
const SMALL_OPTIONS = { shardRows: 30, owned: true }
const BUSY_OPTIONS = { shardRows: 200_000, owned: false }

describe('shards', () => {
  it('come out the same to the byte when the run stops between pages, however often', async () => {
    await fc.assert(
      fc.asyncProperty(
        world,
        order,
        fc.array(fc.nat({ max: 6 })),
        async ([chains, options], turns, stops) => {
          const [calm, disturbed] = [new World(chains, options), new World(chains, options)]
          await calm.open()
          await calm.finish(turns)
          await disturbed.open()
          const waits = [...stops]
          for (const chain of turns) {
            await disturbed.commitNext(chain)
            const wait = waits.shift() ?? 9
            if (wait > 3) continue
            await disturbed.close()
            await disturbed.open()
          }
          await disturbed.finish()
          await disturbed.expectComplete()
          expect(disturbed.files()).toEqual(calm.files())
          expect(disturbed.givenUp).toBe(0)
        },
      ),
      { numRuns: 15 },
    )
  })

  it('come out the same to the byte when pages of several chains are committed at once', async () => {
    await fc.assert(
      fc.asyncProperty(world, async ([chains, options]) => {
        const [oneByOne, atOnce] = [new World(chains, options), new World(chains, options)]
        await oneByOne.open()
        await oneByOne.finish()
        await atOnce.open()
        while (await atOnce.commitRound());
        await atOnce.finish()
        await atOnce.expectComplete()
        expect(atOnce.files()).toEqual(oneByOne.files())
      }),
      { numRuns: 25 },
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
      for (let at = 1; at <= counting.used(); at++) {
        const crashed = new World(BUSY, BUSY_OPTIONS)
        const confirmed = await runUntilCrash(crashed, at, commitAll)
        if (power) crashed.disk.cut(draw)
        await crashed.open()
        // Not one page is asked for again of those that counted, whatever came to the disk beside them.
        for (const [chain, count] of confirmed.entries())
          expect(crashed.pagesOf(chain)).toBeGreaterThanOrEqual(count)
        expect(crashed.givenUp).toBe(0)
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
      fc.asyncProperty(world, crashes, async ([chains, options], ats) => {
        const crashed = new World(chains, options)
        for (const { at, power } of ats) {
          await runUntilCrash(crashed, at, at % 2 === 0 ? commitInTurns : commitRounds)
          // Without it the next process finds what the system still has in memory, and the power may go later.
          if (power !== null) crashed.disk.cut(random(power))
        }
        await crashed.open()
        expect(crashed.givenUp).toBe(0)
        await crashed.finish()
        await crashed.expectComplete()
      }),
      { numRuns: 15 },
    )
  })

  it('are not published on the strength of a line that lost power can take back', async () => {
    const counted = new World(SMALL, SMALL_OPTIONS)
    const counting = crashingStore(counted.store, Number.POSITIVE_INFINITY)
    await counted.open(counting.store)
    await counted.commitInTurns()
    await counted.finish()
    for (let at = 1; at <= counting.used(); at++) {
      for (let later = 1; later <= 4; later++) {
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
          for (const [chain, count] of confirmed.entries()) {
            expect(crashed.pagesOf(chain)).toBeGreaterThanOrEqual(count)
            expect(crashed.pagesOf(chain)).toBeLessThanOrEqual(count + 1)
          }
          expect(state === null && confirmed.some((count) => count > 0)).toBe(false)
          await crashed.close()
        },
      ),
      { numRuns: 15 },
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

  it('are rolled back to their last good page, and what was lost is exported again, once', async () => {
    await fc.assert(
      fc.asyncProperty(world, order, fc.array(fc.tuple(fc.nat(), damage)), async (made, turns, damages) => {
        const damaged = new World(...made)
        await damaged.open()
        for (const chain of turns) await damaged.commitNext(chain)
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
      { numRuns: 25 },
    )
  })

  it('give up no page that is intact', async () => {
    const chains = [{ folder: 'credentials', rows: [1000, 60_000, 60_000, 10, 20, 30] }]
    const made = new World(chains, { shardRows: 1_000_000, owned: false })
    await made.open()
    for (let page = 0; page < 5; page++) await made.commitNext(0)
    await made.close()
    const [log, part] = ['0.log', '0.part'].map((name) => join(made.root, OPEN, name))
    const ends = (await readCheckpoint(made.store))?.openShards.get(0)?.pages.map(({ end }) => end) ?? []
    expect(ends).toHaveLength(5)
    // Three pages are in a chunk, two in the log. A bit of the second of these costs that one only.
    const bytes = readFileSync(log ?? '')
    bytes[(ends[3] ?? 0) + 20] = 0
    writeFileSync(log ?? '', bytes)
    await made.open()
    expect([made.pagesOf(0), made.givenUp]).toEqual([4, 1])
    await made.close()
    // The chunk is gone, and with it every page after it.
    truncateSync(part ?? '', 20)
    await made.open()
    expect([made.pagesOf(0), made.givenUp]).toEqual([0, 5])
    await made.finish()
    await made.expectComplete()
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

/** Commits until the n-th change of the disk, then leaves everything as it is. @returns confirmed pages by chain */
async function runUntilCrash(crashed: World, at: number, commitAll: CommitAll): Promise<number[]> {
  const crashing = crashingStore(crashed.store, at)
  let confirmed = crashed.chains.map(() => 0)
  try {
    await crashed.open(crashing.store)
    await commitAll(crashed, () => {
      confirmed = [...crashed.chains.keys()].map((chain) => crashed.pagesOf(chain))
    })
    for (const folder of crashed.shards?.openFolders ?? []) await crashed.shards?.seal(folder)
  } catch (error) {
    if (!(error instanceof Crash)) throw error
  }
  await crashing.end()
  crashed.shards = null
  crashed.checkpoint = null
  return confirmed
}
