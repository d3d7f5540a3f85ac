import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Store, WindowRun } from '../../src/core/index.ts'
import { openChecked } from '../../src/data-set/open/open-checked.ts'
import { invalidationOf, redoEntry } from '../../src/data-set/redo/invalidate.ts'
import { bringQuarantine, writeQuarantine } from '../../src/data-set/settle/quarantine-files.ts'
import { quarantinePath } from '../../src/load/index.ts'
import {
  type CheckpointState,
  chainEntry,
  type FoldedShard,
  isRedone,
  type JournalEntry,
  saveCheckpoint,
} from '../../src/state/index.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { cases } from '../support/thorough.ts'
import { someJournal } from './imagined-run.ts'
import {
  append,
  begun,
  commitLines,
  days,
  HEADER,
  type JournalLine,
  keysOf,
  openLog,
  own,
  page,
  plain,
  plainChain,
  plainShard,
  seal,
  stateIn,
} from './lines.ts'
import { memoryStore } from './memory-store.ts'

/** All that is invalidated with some partitions and shards: with each what depends on it, until nothing is left. */
function reachedFrom(
  { partitions: records, shards: sealed, openShards, chains: unfinished }: CheckpointState,
  keys: readonly string[],
  lost: readonly number[],
) {
  const [partitions, shards, chains] = [new Set(keys), new Set(lost), new Set<number>()]
  const isReached = (within: Iterable<string>): boolean => [...within].some((key) => partitions.has(key))
  const size = (): number => partitions.size + shards.size + chains.size
  for (let before = -1; before < size(); ) {
    before = size()
    for (const { shard, partitions: within } of [...sealed, ...openShards.values()]) {
      if (!shards.has(shard) && !isReached(within)) continue
      shards.add(shard)
      for (const key of within) partitions.add(key)
    }
    for (const chain of unfinished.values()) {
      if (!isReached(keysOf(chain))) continue
      chains.add(chain.chain)
      // Finished partitions of the chain do not depend on it any more.
      for (const key of keysOf(chain)) if ((records.get(key)?.state ?? 'done') !== 'done') partitions.add(key)
    }
  }
  return { partitions, shards, chains }
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

async function stateOf(
  lines: readonly JournalLine[],
  store: Store = memoryStore(),
): Promise<{ store: Store; state: CheckpointState }> {
  await commitLines(store, lines)
  return { store, state: await stateIn(store) }
}

describe('an invalidation', () => {
  it('covers all partitions of the same shards and chains, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, picks, losses, async (lines, picks, losses) => {
        const { state } = await stateOf(lines)
        const seed = chosen(state, picks, losses)
        const given = invalidationOf(state, seed)
        const { partitions, chains } = given
        const { shards, ...reached } = reachedFrom(state, seed.partitions, seed.shards)
        expect({ partitions, chains }).toEqual(reached)
        expect(given.former).toEqual([...state.shards].filter(({ shard }) => shards.has(shard)))
        const records = [...partitions].flatMap((key) => state.partitions.get(key) ?? [])
        expect(given.rows).toBe(records.reduce((sum, { rows }) => sum + rows, 0))
        expect(given.pages).toBe(records.reduce((sum, { pages }) => sum + pages, 0))
      }),
      { numRuns: cases(100, 8) },
    )
  })

  it('leaves partitions and sealed shards as they are until they are replaced, and drops the rest', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, picks, losses, async (lines, picks, losses) => {
        const { store, state: before } = await stateOf(lines)
        const given = invalidationOf(before, chosen(before, picks, losses))
        await append(store, redoEntry(given))
        const after = await stateIn(store)

        const isGone = ({ partitions }: Pick<FoldedShard, 'partitions'>): boolean =>
          [...partitions].some((key) => given.partitions.has(key))
        const dropped = [...before.openShards.values()].filter(isGone)
        const cut = new Set(dropped.flatMap(({ partitions }) => [...partitions]))
        for (const [key, record] of before.partitions) {
          const isCut = given.partitions.has(key) && cut.has(key)
          expect(after.partitions.get(key)).toEqual(isCut ? { ...record, state: 'partial' } : record)
        }
        expect(after.redo.partitions).toEqual(new Map([...given.partitions].map((key) => [key, null])))
        expect([...after.shards]).toEqual([...before.shards])
        expect([...after.shards].filter((shard) => isRedone(after, shard))).toEqual(given.former)
        expect([...after.openShards.values()].map(plainShard)).toEqual(
          [...before.openShards.values()].filter((shard) => !isGone(shard)).map(plainShard),
        )
        expect([...after.chains.values()].map(plainChain)).toEqual(
          [...before.chains.values()].filter(({ chain }) => !given.chains.has(chain)).map(plainChain),
        )
        for (const chain of after.chains.values())
          for (const key of keysOf(chain)) expect(given.partitions.has(key)).toBe(false)
        const kept = ['header', 'runs', 'searchesRemaining', 'queries', 'unknownFields'] as const
        const [was, is] = [plain(before), plain(after)]
        for (const name of kept) expect(is[name]).toEqual(was[name])
        await saveCheckpoint(await own(store), after)
        // A number of a shard that was dropped may be used again: no file has it.
        const { nextShard: _, ...rewritten } = plain(await stateIn(store))
        expect(is).toMatchObject(rewritten)
      }),
      { numRuns: cases(100, 8) },
    )
  })
})

describe('invalidating', () => {
  const QUERY = 'domain.acme.com'
  const WINDOWS = WindowRun.of('asc', days(4))
  const [FIRST, SECOND, THIRD] = keysOf({ query: QUERY, windows: WINDOWS }) as [string, string, string]
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
    begun('a'),
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
          logged: [{ shard: 2, rows: 1, blob: 0 }],
          position: { at: 5, late: 0 },
        }),
      ],
    },
  ]
  it('new rows wait until all partitions of their shards are done, then take the place of the old ones in one entry', async () => {
    const { store, state } = await stateOf(LINES, temporaryStore().store)
    await append(store, redoEntry(invalidationOf(state, { partitions: [FIRST], shards: [] })))
    const owned = await own(store)
    const refused = await openChecked(owned, HEADER).catch((error: unknown) => error)
    // The shards of this imagined data set do not exist; those to be replaced need not.
    expect(refused).toMatchObject({ kind: 'damaged', where: `${folder(SECOND)}/part-00000.csv` })
    const again: JournalEntry[] = [
      { kind: 'open', shard: 3, folder: folder(FIRST), part: 1 },
      chainEntry(1, QUERY, WINDOWS.part(0, 1)),
      page({
        chain: 1,
        next: null,
        slices: [into(FIRST, 3, 7)],
        logged: [{ shard: 3, rows: 7, blob: 0 }],
        quarantine: [{ window: FIRST.slice(QUERY.length + 1), items: 1, blob: 1 }],
      }),
    ]
    const journal = await openLog(store)
    await journal.commit(again, [Buffer.from('rows'), Buffer.from('an item\n')])
    const between = await stateIn(store)
    expect([...between.shards].map(({ shard }) => shard)).toEqual([0, 1])
    expect([...between.openShards.keys()]).toEqual([3])
    expect(between.partitions.get(FIRST)).toMatchObject({ rows: 5 })
    expect(between.redo.partitions.get(FIRST)).toMatchObject({ state: 'done', rows: 7 })
    expect([between.rejected.has(FIRST), between.redo.rejected.has(FIRST)]).toEqual([false, true])
    // A rewrite keeps what waits.
    await saveCheckpoint(await own(store), between)
    expect(plain(await stateIn(store))).toEqual(plain(between))
    const sealed = seal(3, `${folder(FIRST)}/part-00001.csv`, { rows: 7, partitions: [FIRST] })
    const { kind: _, ...by } = sealed
    const shards = [
      { of: [0], by: null },
      { of: [], by },
    ]
    await journal.append([{ kind: 'swap', shards, partitions: [FIRST] }])
    await journal.close()
    const after = await stateIn(store)
    expect([...after.shards].map(({ shard }) => shard)).toEqual([1, 3])
    expect([...after.invalidated]).toEqual(given(FIRST))
    expect(after.partitions.get(FIRST)).toMatchObject({ state: 'done', rows: 7, quarantined: 1 })
    expect([...after.openShards.keys()]).toEqual([])
    expect([after.rejected.has(FIRST), after.redo.rejected.has(FIRST)]).toEqual([true, false])
    expect(after.redo.partitions.has(FIRST)).toBe(false)
    // No path is used twice, also after a rewrite.
    await saveCheckpoint(await own(store), after)
    const rewritten = await stateIn(store)
    expect([rewritten.partsOf.get(folder(FIRST)), rewritten.goneFrom.get(folder(FIRST))]).toEqual([2, 1])
    expect([...rewritten.invalidated]).toEqual(given(FIRST))
  })

  it('rejected items of what is exported again replace those in the file with the swap, also none', async () => {
    for (const items of ['the second export\n', '']) {
      const { store, state } = await stateOf(LINES, temporaryStore().store)
      const owned = await own(store)
      const redo = redoEntry(invalidationOf(state, { partitions: [FIRST], shards: [] }))
      const journal = await openLog(store)
      await writeQuarantine(owned, FIRST, 0, [Buffer.from('the first export\n')])
      await journal.append([{ kind: 'quarantined', partition: FIRST, blobs: 0, end: 17 }, redo])
      const quarantine = [{ window: FIRST.slice(QUERY.length + 1), items: 1, blob: 0 }]
      const begin = chainEntry(1, QUERY, WINDOWS.part(0, 1))
      const last = page({ chain: 1, next: null, ...(items === '' ? {} : { quarantine }) })
      await journal.commit([begin, last], [Buffer.from(items)])
      await bringQuarantine(owned, journal)
      expect(await textAt(store, quarantinePath(FIRST))).toBe('the first export\n')
      await journal.append([{ kind: 'swap', shards: [{ of: [0], by: null }], partitions: [FIRST] }])
      await bringQuarantine(owned, journal)
      expect(await textAt(store, quarantinePath(FIRST))).toBe(items === '' ? null : items)
      expect(journal.state.partitions.get(FIRST)).toMatchObject({ rows: 0, quarantineEnd: items.length })
    }
  })

  const textAt = async (store: Store, path: string): Promise<string | null> => {
    const bytes = await store.read(path)
    return bytes === null ? null : Buffer.from(bytes).toString()
  }
  const given = (key: string): string[] => [`${folder(key)}/part-00000.csv`]
})
