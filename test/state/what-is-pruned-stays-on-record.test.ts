import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseWindow } from '../../src/core/index.ts'
import { type OldPartitions, oldPartitions } from '../../src/data-set/commands/prune.ts'
import { type CheckpointState, type JournalEntry, saveCheckpoint, splitPath } from '../../src/state/index.ts'
import { cases } from '../support/thorough.ts'
import { expectRowsToBeInShards } from './figures.ts'
import { someJournal } from './imagined-run.ts'
import {
  append,
  commitLines,
  days,
  keysOf,
  own,
  PRUNE,
  plain,
  plainChain,
  plainShard,
  stateIn,
} from './lines.ts'
import { memoryStore } from './memory-store.ts'

/** An end of one of the days in the journals, so that some partitions are older, or all, or none. */
const cut = fc.nat({ max: 6 }).map((day) => days(1, day)[0]!.from)

/**
 * The partitions that may be pruned: done and old enough. Partitions that share a shard, finished or open, or a chain
 * that may add rows, are pruned together or not at all.
 */
function mayGo(state: CheckpointState, before: number): ReadonlySet<string> {
  const isFit = (key: string): boolean =>
    (parseWindow(splitPath(key)[1])?.until ?? Number.MAX_VALUE) <= before &&
    state.partitions.get(key)?.state === 'done'
  const holders = [
    ...[...state.shards, ...state.openShards.values()].map(({ partitions }) => [...partitions]),
    ...[...state.chains.values()].map(keysOf),
  ]
  const going = new Set<string>()
  for (const [key] of state.partitions) {
    const together = new Set([key])
    for (let size = 0; size < together.size; ) {
      size = together.size
      for (const held of holders)
        if (held.some((other) => together.has(other))) for (const other of held) together.add(other)
    }
    if ([...together].every(isFit)) going.add(key)
  }
  return going
}

function keysIn({ removed }: OldPartitions): ReadonlySet<string> {
  return new Set(removed.map(({ partition }) => partition))
}

describe('an old partition', () => {
  it('is pruned with all partitions that share a shard with it, or not at all', async () => {
    let seen = 0
    await fc.assert(
      fc.asyncProperty(someJournal, cut, async (lines, before) => {
        const store = memoryStore()
        await commitLines(store, lines)
        const state = await stateIn(store)
        const old = oldPartitions(state, before)
        const keys = keysIn(old)
        expect(keys).toEqual(mayGo(state, before))
        seen += keys.size
        const going = [...state.shards].filter(({ partitions }) => partitions.some((key) => keys.has(key)))
        expect(new Set(old.shards)).toEqual(new Set(going))
        // Its rows are the rows of those shards, and of open ones.
        for (const { partition, rows } of old.removed)
          expect(state.partitions.get(partition)!.rows).toBe(rows)
        // Every old partition with rows that stays has a reason.
        const staying = [...state.partitions]
          .filter(([key, { rows, quarantined }]) => {
            const window = parseWindow(splitPath(key)[1])
            const isOld = window !== null && window.until <= before
            return isOld && rows + quarantined > 0 && !keys.has(key)
          })
          .map(([key]) => key)
        expect(old.kept.map(({ partition }) => partition).sort()).toEqual(staying.sort())
      }),
      // Something is pruned in nearly half of the cases.
      { numRuns: cases(40, 24) },
    )
    expect(seen).toBeGreaterThan(0)
  })

  it('is recorded as pruned, without rows and shards; all other partitions are unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(someJournal, cut, async (lines, before) => {
        const store = memoryStore()
        await commitLines(store, lines)
        const state = await stateIn(store)
        const old = oldPartitions(state, before)
        const going = keysIn(old)
        const gone = new Set(old.shards.map(({ shard }) => shard))
        const shards = old.shards.map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
        const prune = { ...PRUNE, removed: old.removed, shards }
        const goes: JournalEntry = {
          kind: 'swap',
          shards: [...gone].map((shard) => ({ of: [shard], by: null })),
        }
        await append(store, goes, { kind: 'prune', ...prune })
        const after = await stateIn(store)
        for (const [key, record] of state.partitions) {
          const { pages, requests } = record
          const none = { rows: 0, quarantined: 0, repeated: 0, forgotten: 0, quarantineEnd: 0, error: null }
          const expected = going.has(key) ? { state: 'pruned', pages, requests, ...none } : record
          expect(after.partitions.get(key)).toEqual(expected)
        }
        expect([...after.partitions]).toHaveLength([...state.partitions].length)
        expect([...after.shards]).toEqual([...state.shards].filter(({ shard }) => !gone.has(shard)))
        const stays = (keys: Iterable<string>): boolean => [...keys].some((key) => !going.has(key))
        expect([...after.openShards.values()].map(plainShard)).toEqual(
          [...state.openShards.values()].filter(({ partitions }) => stays(partitions)).map(plainShard),
        )
        expect([...after.chains.values()].map(plainChain)).toEqual(
          [...state.chains.values()].filter((chain) => stays(keysOf(chain))).map(plainChain),
        )
        expect(new Set(after.invalidated)).toEqual(new Set(old.shards.map(({ path }) => path)))
        expect(after.prunes).toEqual([...state.prunes, prune])
        expectRowsToBeInShards(after)
        // A pruned partition is not pruned again, and its removed files may be forgotten.
        expect(oldPartitions(after, before).removed).toEqual([])
        await append(store, { kind: 'settled' })
        await saveCheckpoint(await own(store), await stateIn(store))
        const last = await stateIn(store)
        expect(plain(last)).toEqual(plain(after))
        expect(last.invalidated.size).toBe(0)
      }),
      { numRuns: cases(40, 8) },
    )
  })
})
