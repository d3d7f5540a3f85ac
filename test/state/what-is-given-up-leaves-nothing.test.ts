import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Store, WindowRun } from '../../src/core/index.ts'
import { invalidationOf } from '../../src/run/data-set/invalidate.ts'
import { openSettledCheckpoint } from '../../src/run/data-set/recover.ts'
import { type CheckpointState, chainEntry, rewriteCheckpoint } from '../../src/state/index.ts'
import type { JournalLine } from '../../src/state/journal/journal-line.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { cases } from '../support/thorough.ts'
import { someJournal } from './imagined-run.ts'
import {
  days,
  HEADER,
  keysOf,
  page,
  plain,
  plainChain,
  plainShard,
  seal,
  stateIn,
  writeCheckpoint,
} from './lines.ts'
import { expectRowsToBeInShards } from './sum-of-lines.ts'

/** All that is invalidated with some partitions and shards: step by step, from each to what depends on it. */
function reachedFrom(
  { partitions, shards, openShards, chains }: CheckpointState,
  keys: readonly string[],
  lost: readonly number[],
) {
  const holders = [...shards, ...openShards.values()].map(({ shard, partitions }) => ({
    shard,
    keys: [...partitions],
  }))
  const ways = [...chains.values()].map((chain) => ({ chain: chain.chain, keys: keysOf(chain) }))
  const reached = { partitions: new Set<string>(), shards: new Set<number>(), chains: new Set<number>() }
  const takeShard = (holder: (typeof holders)[number]): void => {
    if (reached.shards.has(holder.shard)) return
    reached.shards.add(holder.shard)
    for (const key of holder.keys) takePartition(key)
  }
  const takePartition = (key: string): void => {
    if (reached.partitions.has(key)) return
    reached.partitions.add(key)
    for (const holder of holders) if (holder.keys.includes(key)) takeShard(holder)
    for (const way of ways) {
      if (!way.keys.includes(key) || reached.chains.has(way.chain)) continue
      reached.chains.add(way.chain)
      // Finished partitions of the chain do not depend on it any more.
      for (const other of way.keys) {
        if ((partitions.get(other)?.state ?? 'done') !== 'done') takePartition(other)
      }
    }
  }
  for (const key of keys) takePartition(key)
  for (const holder of holders) if (lost.includes(holder.shard)) takeShard(holder)
  return reached
}

/** The partitions and open shards to invalidate, chosen by numbers. */
function chosen(state: CheckpointState, picks: readonly number[], losses: readonly number[]) {
  const keys = [...state.partitions].map(([key]) => key)
  const open = [...state.openShards.keys()]
  return {
    partitions: keys.filter((_, index) => picks.includes(index)),
    shards: open.filter((_, index) => losses.includes(index)),
  }
}

const picks = fc.uniqueArray(fc.nat({ max: 12 }), { maxLength: 2 })
const losses = fc.uniqueArray(fc.nat({ max: 3 }), { maxLength: 1 })

async function stateOf(lines: readonly JournalLine[]): Promise<{ store: Store; state: CheckpointState }> {
  const { store } = temporaryStore()
  await writeCheckpoint(store, lines)
  return { store, state: await stateIn(store) }
}

describe('an invalidation', () => {
  it('covers all partitions of the same shards and chains, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, picks, losses, async (lines, picks, losses) => {
        const { state } = await stateOf(lines)
        const seed = chosen(state, picks, losses)
        const given = invalidationOf(state, seed)
        const { partitions, shards, chains } = given
        expect({ partitions, shards, chains }).toEqual(reachedFrom(state, seed.partitions, seed.shards))
        const gone = [...state.shards].filter(({ shard }) => shards.has(shard))
        expect([...given.invalidated].sort()).toEqual(gone.map(({ path }) => path).sort())
        const records = [...partitions].flatMap((key) => state.partitions.get(key) ?? [])
        expect(given.rows).toBe(records.reduce((sum, { rows }) => sum + rows, 0))
        expect(given.pages).toBe(records.reduce((sum, { pages }) => sum + pages, 0))
      }),
      { numRuns: cases(100, 20) },
    )
  })

  it('removes its partitions from the checkpoint, and changes nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, picks, losses, async (lines, picks, losses) => {
        const { store, state: before } = await stateOf(lines)
        const given = invalidationOf(before, chosen(before, picks, losses))
        await rewriteCheckpoint(store, before, given)
        const after = await stateIn(store)

        expect(new Map(after.partitions)).toEqual(
          new Map([...before.partitions].filter(([key]) => !given.partitions.has(key))),
        )
        expect([...after.shards]).toEqual([...before.shards].filter(({ shard }) => !given.shards.has(shard)))
        expect([...after.openShards.values()].map(plainShard)).toEqual(
          [...before.openShards.values()].filter(({ shard }) => !given.shards.has(shard)).map(plainShard),
        )
        expect([...after.chains.values()].map(plainChain)).toEqual(
          [...before.chains.values()].filter(({ chain }) => !given.chains.has(chain)).map(plainChain),
        )
        // A file has all rows of its partitions, and a partition all its rows, or neither exists.
        expectRowsToBeInShards(after)
        for (const shard of [...after.shards, ...after.openShards.values()]) {
          for (const key of shard.partitions) expect(given.partitions.has(key)).toBe(false)
        }
        for (const chain of after.chains.values()) {
          for (const key of keysOf(chain)) expect(given.partitions.has(key)).toBe(false)
        }
        // No partition of a removed chain is half exported.
        for (const number of given.chains) {
          for (const key of keysOf(before.chains.get(number)!)) {
            expect(after.partitions.get(key)?.state ?? 'done').toBe('done')
          }
        }
        expect([...after.invalidated]).toEqual(given.invalidated)
        const kept = [
          'header',
          'runs',
          'searchesRemaining',
          'secretChecks',
          'queries',
          'unknownFields',
        ] as const
        const [was, is] = [plain(before), plain(after)]
        for (const name of kept) expect(is[name]).toEqual(was[name])
      }),
      { numRuns: cases(100, 20) },
    )
  })

  it('of nothing is empty', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, async (lines) => {
        const { store, state } = await stateOf(lines)
        const given = invalidationOf(state, { partitions: [], shards: [] })
        expect(given).toMatchObject({ rows: 0, pages: 0, invalidated: [] })
        await rewriteCheckpoint(store, state, given)
        expect(plain(await stateIn(store))).toEqual(plain(state))
      }),
      { numRuns: cases(20, 5) },
    )
  })
})

describe('invalidating', () => {
  const QUERY = 'domain.acme.com'
  const WINDOWS = WindowRun.of('asc', days(4))
  const [FIRST, SECOND, THIRD, FOURTH] = keysOf({ query: QUERY, windows: WINDOWS }) as [
    string,
    string,
    string,
    string,
  ]
  const folder = (key: string): string => `credentials/${key}`
  const into = (key: string, shard: number, rows: number) => ({
    window: key.slice(QUERY.length + 1),
    shard,
    rows,
    imported_at: { min: 1, max: 2 },
  })
  /** A chain with two finished windows, a sealed shard each, and a third window, whose shard is open. */
  const LINES: JournalLine[] = [
    HEADER,
    { kind: 'run', run: 'a', started_at: '2024-07-01T00:00:00.000Z', version: '1.0.0' },
    {
      kind: 'transaction',
      entries: [
        seal(0, `${folder(FIRST)}/part-00000.csv`, { rows: 5, partitions: [FIRST] }),
        seal(1, `${folder(SECOND)}/part-00000.csv`, { rows: 6, partitions: [SECOND] }),
        { kind: 'open', shard: 2, folder: folder(THIRD), part: 0 },
        chainEntry(0, QUERY, WINDOWS),
        page({
          watermark: 2,
          requests: 3,
          slices: [into(FIRST, 0, 5), into(SECOND, 1, 6), into(THIRD, 2, 1)],
          logged: [{ shard: 2, generation: 1, end: 8, rows: 1 }],
          position: { at: 5, ids: [1] },
        }),
      ],
    },
  ]
  const states = ({ partitions }: CheckpointState) =>
    [FIRST, SECOND, THIRD, FOURTH].map((key) => partitions.get(key)?.state ?? null)

  it('an open shard that lost its rows keeps the finished windows of the chain', async () => {
    const { store, state } = await stateOf(LINES)
    expect(states(state)).toEqual(['done', 'done', 'partial', null])
    const given = invalidationOf(state, { partitions: [], shards: [2] })
    expect(given).toMatchObject({ rows: 1, invalidated: [] })
    await rewriteCheckpoint(store, state, given)
    const after = await stateIn(store)
    expect(states(after)).toEqual(['done', 'done', null, null])
    expect([after.chains.size, after.openShards.size, after.shards.length]).toEqual([0, 0, 2])
    expect(after.runs[0]?.requests).toBe(3)
  })

  it('a finished window of a chain invalidates the chain and its current window', async () => {
    const { store, state } = await stateOf(LINES)
    const given = invalidationOf(state, { partitions: [FIRST], shards: [] })
    expect(given.invalidated).toEqual([`${folder(FIRST)}/part-00000.csv`])
    await rewriteCheckpoint(store, state, given)
    const after = await stateIn(store)
    expect(states(after)).toEqual([null, 'done', null, null])
    expect([after.chains.size, after.openShards.size]).toEqual([0, 0])
    expect([...after.shards].map(({ shard }) => shard)).toEqual([1])
  })

  it('keeps paths in the journal until new shards have them, also when more is invalidated', async () => {
    const { store, state } = await stateOf(LINES)
    const paths = [FIRST, SECOND].map((key) => `${folder(key)}/part-00000.csv`)
    await rewriteCheckpoint(store, state, invalidationOf(state, { partitions: [FIRST], shards: [] }))
    const once = await stateIn(store)
    await rewriteCheckpoint(store, once, invalidationOf(once, { partitions: [SECOND], shards: [] }))
    const twice = await stateIn(store)
    expect([...twice.invalidated].sort()).toEqual(paths)
    expect([twice.shards.length, [...twice.partitions].length, twice.runs[0]?.requests]).toEqual([0, 0, 3])
    // Files are removed when the data set is opened, before new shards get their names.
    for (const path of paths) await store.writeWhole(path, ['old'])
    const checkpoint = await openSettledCheckpoint(
      store,
      HEADER,
      () => {},
      () => {},
    )
    for (const path of paths) expect(await store.size(path)).toBeNull()
    await checkpoint.append([seal(0, paths[0]!, { partitions: [FIRST] })])
    await checkpoint.close()
    expect([...(await stateIn(store)).invalidated]).toEqual(paths.slice(1))
  })
})
