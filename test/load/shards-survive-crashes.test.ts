import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BlobRef } from '../../src/state/index.ts'
import { random } from '../support/random.ts'
import { cases, some, THOROUGH } from '../support/thorough.ts'
import {
  Crash,
  crashing,
  type Responses,
  responsesOf,
  slowEncoder,
  textEncoder,
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
const BUSY_OPTIONS: WorldOptions = { rowGroupRows: 5, shardRows: 12, owned: false }

/** How all pages are committed. */
type CommitAll = 'commitInTurns' | 'commitInRounds'

function windows(digits: string): number[] {
  return [...digits].map(Number)
}

/** The step between changes of the disk with a crash; prime, so that all kinds of changes are tested. */
const STEP = THOROUGH ? 1 : 17

// That their bytes depend on their rows alone, also over several runs: `shards-depend-on-rows-alone`.
describe('shards', () => {
  const ways: readonly (readonly [string, CommitAll, number])[] = [
    ['one by one', 'commitInTurns', 0],
    ['one by one with row groups encoded behind them', 'commitInTurns', 40],
    ['concurrently with row groups encoded behind them', 'commitInRounds', 40],
    ['concurrently', 'commitInRounds', 0],
  ]
  it.each(some(ways, 2))(
    'committed %s are complete and have no row twice after a crash at any change of the disk',
    async (_, commitAll, slow) => {
      const draw = random(20240722)
      const encoder = slowEncoder(textEncoder, () => Math.floor(draw() * slow))
      const made = (): World => new World(BUSY, { ...BUSY_OPTIONS, encoder })
      const counted = made()
      const counting = crashing(Number.POSITIVE_INFINITY)
      await counted.open(counting.wrap)
      await counted[commitAll]()
      await counted.finish()
      await counted.expectComplete()
      expect(counting.used()).toBeGreaterThan(25)
      for (let at = 1; at <= counting.used(); at += STEP) {
        const crashed = made()
        const confirmed = await runUntilCrash(crashed, at, commitAll)
        await crashed.open()
        // No committed page is requested again, whatever else was written to the disk.
        for (const [query, count] of confirmed.entries()) {
          expect(crashed.pagesOf(query), `${at}`).toBeGreaterThanOrEqual(count)
          expect(crashed.pagesOf(query), `${at}`).toBeLessThanOrEqual(count + 1)
        }
        expect(crashed.invalidated).toEqual([])
        await crashed.finish()
        await crashed.expectComplete()
      }
    },
  )

  it('are complete after repeated crashes, also during recovery', async () => {
    const crashes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(world, crashes, fc.boolean(), async ([responses, options], ats, isSlow) => {
        const encoder = isSlow ? slowEncoder(textEncoder, () => 20) : textEncoder
        const crashed = new World(responses, { ...options, encoder })
        for (const at of ats)
          await runUntilCrash(crashed, at, at % 2 === 0 ? 'commitInTurns' : 'commitInRounds')
        await crashed.open()
        expect(crashed.invalidated).toEqual([])
        await crashed.finish()
        await crashed.expectComplete()
      }),
      { numRuns: cases(30, 4) },
    )
  })
})

describe('open shards whose rows in the log did not survive', () => {
  const fraction = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
  const damage = fc.record({ which: fc.nat(), do: fc.constantFrom('flip', 'cut', 'remove'), at: fraction })

  it('are invalidated with all partitions that share a shard, which are exported again, once', async () => {
    await fc.assert(
      fc.asyncProperty(world, order, fc.array(damage), async (made, turns, damages) => {
        const damaged = new World(...made)
        await damaged.open()
        for (const query of turns) await damaged.commitNext(query)
        const records = [...damaged.journal!.state.openShards.values()].flatMap(({ batches }) => batches)
        await damaged.close()
        for (const { which, do: what, at } of records.length === 0 ? [] : damages)
          strike(damaged, records[which % records.length]!.at, what, at)
        await damaged.open()
        await damaged.finish()
        await damaged.expectComplete()
      }),
      { numRuns: cases(25, 3) },
    )
  })

  it('also invalidate sealed shards with rows of the same partition, once, however often the run stops', async () => {
    const responses = [responsesOf('credentials', 10, 10), responsesOf('credentials', 9, 2)]
    const damaged = async (): Promise<World> => {
      const made = new World(responses, { rowGroupRows: 4, shardRows: 16, owned: false })
      await made.open()
      for (const query of [0, 1]) await made.commitNext(query)
      await made.shards!.settled()
      expect([...made.files().keys()]).toEqual(['credentials/part-00000.csv'])
      const [rest] = [...made.journal!.state.openShards.values()]
      await made.close()
      // The rest of the second query's rows is in the log alone.
      strike(made, rest!.batches[0]!.at, 'remove', 0)
      return made
    }
    const counted = await damaged()
    const counting = crashing(Number.POSITIVE_INFINITY)
    await counted.open(counting.wrap)
    expect(counted.invalidated).toMatchObject([
      { former: [{ path: 'credentials/part-00000.csv' }], rows: 19, pages: 2 },
    ])
    // Its rows stay until the new ones take their place.
    expect([...counted.files().keys()]).toEqual(['credentials/part-00000.csv'])
    await counted.finish()
    expect(counted.files().has('credentials/part-00000.csv')).toBe(false)
    await counted.expectComplete()
    for (let at = 1; at <= counting.used(); at += STEP) {
      const crashed = await damaged()
      await runUntilCrash(crashed, at, 'commitInTurns')
      await crashed.open()
      expect(crashed.invalidated.length).toBeLessThanOrEqual(2)
      await crashed.finish()
      await crashed.expectComplete()
    }
  })
})

/** Damages bytes of the log: flips a bit, cuts the object within them, or removes it. */
function strike({ root }: World, { file, offset, bytes }: BlobRef, what: string, at: number): void {
  const path = join(root, '_state/log', String(file).padStart(16, '0'))
  const index = offset + Math.floor(at * bytes)
  if (!existsSync(path)) return
  const content = readFileSync(path)
  if (what === 'remove') rmSync(path)
  else if (what === 'cut') truncateSync(path, Math.min(index, content.length))
  else if (index < content.length) {
    content[index]! ^= 0x10
    writeFileSync(path, content)
  }
}

/** Commits until the n-th change of the disk, then leaves everything as it is. @returns confirmed pages by query */
async function runUntilCrash(crashed: World, at: number, commitAll: CommitAll): Promise<number[]> {
  const crash = crashing(at)
  let confirmed = crashed.responses.map(() => 0)
  try {
    await crashed.open(crash.wrap)
    await crashed[commitAll](() => {
      confirmed = [...crashed.responses.keys()].map((query) => crashed.pagesOf(query))
    })
    await crashed.shards?.seal(crashed.shards.openFolders)
  } catch (error) {
    if (!(error instanceof Crash)) throw error
  }
  await crash.end()
  crashed.forget()
  return confirmed
}
