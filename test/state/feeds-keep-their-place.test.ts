import { expect, test } from 'vitest'
import { nextPass } from '../../src/run/follow/feed.ts'
import { JournalFold } from '../../src/state/checkpoint/fold-journal.ts'
import { afterFeedPage, NEW_FEED } from '../../src/state/checkpoint/folded-feed.ts'
import { snapshot } from '../../src/state/checkpoint/snapshot.ts'
import type { ChainEntry, JournalEntry, PageEntry } from '../../src/state/index.ts'
import { LOG_START, requireReadable } from '../../src/state/log/commit.ts'
import { begun, ended, HEADER } from './lines.ts'

const CHAIN: ChainEntry = {
  kind: 'chain',
  chain: 0,
  query: 'feed.7',
  order: 'asc',
  windows: null,
  feed: NEW_FEED,
}
const page = (
  next: string | null,
  feed: PageEntry['feed'],
  window = '2024-01-01..2024-02-01',
): PageEntry => ({
  kind: 'page',
  chain: 0,
  next,
  requests: 1,
  size: 10,
  slices: [{ window, shard: 0, rows: 10, imported_at: null }],
  ids: { blob: 0, keep: 0 },
  feed,
})

/** A run that reads the feed to its end, which is its front as well. */
const FIRST = [begun('a'), CHAIN, page('c1', { over: false }), page(null, { over: true })]
const FRONT: JournalEntry = { kind: 'restart', chain: 0, since: null, pass: 'front' }

/** The state after these entries; pages have ten ids each. */
function folded(...entries: JournalEntry[]) {
  const fold = new JournalFold(HEADER)
  for (const [file, entry] of entries.entries())
    fold.apply([entry], LOG_START, [{ file, offset: 0, bytes: 84, crc: 0 }])
  const again = new JournalFold(HEADER)
  for (const entry of snapshot(fold)) {
    requireReadable(entry)
    if (entry.kind !== 'header') again.apply([entry], LOG_START, [])
  }
  for (const state of [fold, again]) {
    expect(state.chains).toEqual(fold.chains)
    expect([...state.partitions]).toEqual([...fold.partitions])
  }
  return fold
}

test('the last cursor that was not null stays, and the feed is partial from the next run on', () => {
  const done = folded(...FIRST, ended('a'))
  expect(done.chains.get(0)).toMatchObject({ next: 'c1', feed: { pass: null, end: 'c1', front: 2 } })
  expect([...done.partitions].map(([key, { state }]) => [key, state])).toEqual([
    ['feed.7/all', 'done'],
    ['feed.7/2024-01-01..2024-02-01', 'done'],
  ])
  const next = folded(...FIRST, ended('a'), begun('b'))
  expect(next.partitions.get('feed.7/all')?.state).toBe('partial')
})

test('after a pass to the end the front is read next, also by a run that could not do both', () => {
  const first = [...FIRST, ended('a')]
  const tail = [...first, begun('b'), page(null, { over: true, more: true }), ended('b')]
  const none = { front: false, end: false }
  const passAfter = (...entries: JournalEntry[]) => nextPass(folded(...entries).chains.get(0)!.feed!, none)
  expect(passAfter(...first, begun('b'))).toBe('tail')
  expect(passAfter(...tail, begun('c'))).toBe('front')
  expect(passAfter(...tail, begun('c'), FRONT, page('d1', { over: true }), begun('d'))).toBe('tail')
})

test('what was the front stays until a pass from the front has met it', () => {
  const first = [...FIRST, ended('a')]
  const half = folded(...first, begun('b'), FRONT, page('d1', { over: false }))
  expect(half.chains.get(0)).toMatchObject({
    next: 'd1',
    feed: { pass: 'front', end: 'c1', front: 2, head: 1 },
  })
  expect(half.chains.get(0)?.ids.map(({ file }) => file)).toEqual([2, 3, 7])
  const met = folded(...first, begun('b'), FRONT, page('d1', { over: false }), page('d2', { over: true }))
  // The new front comes first, and the last cursor of the end is what the tail goes on from.
  expect(met.chains.get(0)).toMatchObject({ next: 'c1', feed: { pass: null, end: 'c1', front: 4, head: 0 } })
  expect(met.chains.get(0)?.ids.map(({ file }) => file)).toEqual([7, 8, 2, 3])
})

test('a feed is not done while another pass is to follow', () => {
  const more = page(null, { over: true, more: true })
  expect(folded(begun('a'), CHAIN, more).partitions.get('feed.7/all')?.state).toBe('partial')
})

test('of a long feed the first and the last 20,000 ids are kept, and what was forgotten is known', () => {
  let [feed, ids] = [NEW_FEED, [] as readonly number[]]
  for (let id = 0; id < 100; id++) {
    const each = { ids: id, cursor: `c${id}`, size: 1000, next: `c${id + 1}`, isOver: false }
    ;({ feed, ids } = afterFeedPage(feed, ids, each, () => 1000))
  }
  const [first, last] = [ids.slice(0, 20), ids.slice(20)]
  expect(first).toEqual(Array.from({ length: 20 }, (_, id) => id))
  expect(last).toEqual(Array.from({ length: 20 }, (_, i) => 80 + i))
  expect(feed).toMatchObject({ head: 20, truncated: true })
})
