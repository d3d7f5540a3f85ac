import { type Window, WindowRun } from '../../core/index.ts'
import {
  countOfIds,
  neededBefore,
  type PageIds,
  type Position,
  type Restart,
  SeenCursors,
} from '../../rows/index.ts'
import { type BlobRef, blobRef, blobTuple } from '../commit-log.ts'
import type { ChainEntry, FeedProgress, PageEntry } from '../journal-entry.ts'
import { afterFeedPage } from './folded-feed.ts'

/** A chain that has begun and not ended. */
export type FoldedChain = {
  readonly chain: number
  /** Name of the query. */
  readonly query: string
  /** Its windows, without those that other chains took over. */
  readonly windows: WindowRun
  /** Number of its first windows that get no more rows, provided that rows come in order. */
  readonly watermark: number
  readonly next: string | null
  readonly pages: number
  /** Resume position; null: no item yet, or items are not in order. */
  readonly position: Position | null
  /** Whether all items so far came in order of `imported_at`. */
  readonly inOrder: boolean
  /** The range of its requests. */
  readonly requested: Window | null
  /** Set when it restarted after a rejected cursor: its requests begin at this position. */
  readonly since: Restart | null
  /** Cursors before `next`; null: none. */
  readonly seen: SeenCursors | null
  /** The ids of its last pages, in the log. */
  readonly ids: readonly BlobRef[]
  /** Rows requested with its last page; null: no page yet. */
  readonly size: number | null
  /** How far a feed is read; null: it is a search. */
  readonly feed: FeedProgress | null
}

export function chainFromEntry(entry: ChainEntry): FoldedChain {
  const { chain, query, order, windows, feed = null, state } = entry
  const run = new WindowRun(order, windows === null ? null : boundsOf(windows))
  const identity = { chain, query, windows: run, feed }
  if (state === undefined) {
    const beginning = { watermark: 0, next: null, pages: 0, position: null, inOrder: true, since: null }
    return { ...identity, ...beginning, requested: run.range, seen: null, ids: [], size: null }
  }
  const { in_order, seen, ids, ...rest } = state
  const cursors = seen === '' ? null : SeenCursors.from(Buffer.from(seen, 'base64'))
  return { ...identity, ...rest, inOrder: in_order, seen: cursors, ids: ids.map(blobRef) }
}

/** The entry that begins a chain. */
export function chainEntry(
  chain: number,
  query: string,
  windows: WindowRun,
  feed: FeedProgress | null = null,
): ChainEntry {
  const { order, bounds } = windows
  const entry = { chain, query, order, windows: bounds === null ? null : spansOf(bounds) }
  return { kind: 'chain', ...entry, ...(feed === null ? {} : { feed }) }
}

/** The entry that replaces all others about a chain when the journal is compacted. */
export function compactedEntry(folded: FoldedChain): ChainEntry {
  const { next, watermark, pages, position, inOrder, requested, since, seen, ids, size } = folded
  return {
    ...chainEntry(folded.chain, folded.query, folded.windows, folded.feed),
    state: {
      next,
      watermark,
      pages,
      position,
      in_order: inOrder,
      requested,
      since,
      seen: seen === null ? '' : Buffer.from(seen.toBytes()).toString('base64'),
      ids: ids.map(blobTuple),
      size,
    },
  }
}

/** The chain after a page that is not its last. @param ids of the page; null: it has none */
export function afterPage(folded: FoldedChain, page: PageEntry, ids: BlobRef | null): FoldedChain {
  if (folded.feed !== null) return afterPageOfFeed(folded, folded.feed, page, ids)
  const { position = folded.position } = page
  return {
    ...folded,
    next: page.next,
    watermark: page.watermark ?? folded.watermark,
    pages: folded.pages + 1,
    position,
    inOrder: folded.inOrder && page.position !== null,
    seen: withCursor(folded.seen, folded.next),
    ids: ids === null ? folded.ids : [...lastOf(folded.ids, page.ids?.keep ?? 0), ids],
    size: page.size ?? folded.size,
  }
}

function afterPageOfFeed(
  folded: FoldedChain,
  feed: FeedProgress,
  page: PageEntry,
  ids: BlobRef | null,
): FoldedChain {
  const { over: isOver, rising, falling } = page.feed ?? { over: page.next === null, rising: 0, falling: 0 }
  const size = page.size ?? folded.size
  const { next } = page
  const after = afterFeedPage(
    feed,
    folded.ids,
    { ids, cursor: folded.next, size, next, isOver, rising, falling },
    countOfBlob,
  )
  return {
    ...folded,
    ...after,
    pages: folded.pages + 1,
    ...(isOver
      ? { next: after.feed.end, size: after.feed.end_size, seen: null }
      : { next, size, seen: withCursor(folded.seen, folded.next) }),
  }
}

/** The ids of a page for the log: the number of words of rows, then the words of rows and of rejected items. */
export function encodeIds({ rows, refused }: PageIds): Uint8Array {
  const words = new Int32Array(1 + rows.length + refused.length)
  words[0] = rows.length
  words.set(rows, 1)
  words.set(refused, 1 + rows.length)
  return new Uint8Array(words.buffer)
}

export function decodeIds(bytes: Uint8Array): PageIds {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2)
  const end = 1 + words[0]!
  return { rows: words.slice(1, end), refused: words.slice(end) }
}

/** How many of a chain's ids in the log are still needed after a page. */
export function neededIds({ ids }: FoldedChain, page: PageIds): number {
  return neededBefore(ids, countOfIds(page), countOfBlob)
}

/** Ids in the bytes of `encodeIds`. */
function countOfBlob({ bytes }: BlobRef): number {
  return (bytes - 4) / 8
}

function lastOf(ids: readonly BlobRef[], count: number): readonly BlobRef[] {
  return ids.slice(Math.max(0, ids.length - count))
}

/** Adds a cursor in place. All states of a chain share one set until a restart, which begins a new one. */
function withCursor(seen: SeenCursors | null, cursor: string | null): SeenCursors | null {
  if (cursor === null) return seen
  const grown = seen ?? new SeenCursors()
  grown.add(cursor)
  return grown
}

type Spans = NonNullable<ChainEntry['windows']>

function spansOf(bounds: Float64Array): Spans {
  const spans: [number, number][] = []
  for (let i = 1; i < bounds.length; i++) {
    const span = bounds[i]! - bounds[i - 1]!
    const last = spans.at(-1)
    // The length is not exact as a double, so the entry has the end instead.
    if (bounds[i - 1]! + span !== bounds[i] || !Number.isSafeInteger(span)) spans.push([bounds[i]!, 0])
    else if (last?.[0] === span && last[1] > 0) last[1]++
    else spans.push([span, 1])
  }
  return { from: bounds[0]!, spans }
}

function boundsOf({ from, spans }: Spans): Float64Array {
  const bounds = new Float64Array(1 + spans.reduce((sum, [, times]) => sum + (times || 1), 0))
  let bound = from
  let index = 0
  bounds[index++] = bound
  for (const [span, times] of spans) {
    if (times === 0) {
      bound = span
      bounds[index++] = bound
    }
    for (let i = 0; i < times; i++) {
      bound += span
      bounds[index++] = bound
    }
  }
  return bounds
}
