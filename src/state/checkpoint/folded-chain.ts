import { WindowRun } from '../../core/index.ts'
import { type PageIds, SeenCursors } from '../../rows/index.ts'
import type { ChainEntry, FeedProgress, PageEntry } from '../journal-entry.ts'
import { type BlobRef, blobRef, blobTuple } from '../log/commit.ts'
import { afterFeedPage } from './folded-feed.ts'

type Progress = NonNullable<ChainEntry['state']>

/** A chain that has begun and not ended. */
export type FoldedChain = Pick<ChainEntry, 'chain' | 'query'> &
  Omit<Progress, 'seen' | 'ids' | 'lost'> & {
    /** Its windows, without those that other chains took over. */
    readonly windows: WindowRun
    /** Cursors before `next`; null: none. */
    readonly seen: SeenCursors | null
    /** The ids of its last pages, in the log. */
    readonly ids: readonly BlobRef[]
    readonly lost: boolean
    /** How far a feed is read; null: it is a search. */
    readonly feed: FeedProgress | null
    readonly schema: number
  }

export function chainFromEntry(entry: ChainEntry): FoldedChain {
  const { chain, query, order, windows, feed = null, schema = 0, state } = entry
  const run = new WindowRun(order, windows === null ? null : boundsOf(windows))
  const identity = { chain, query, windows: run, feed, schema }
  if (state === undefined) {
    const beginning = { watermark: 0, next: null, pages: 0, position: null, since: null, seen: null }
    const requested = run.range
    return { ...identity, ...beginning, requested, ids: [], truncated: false, lost: false, size: null }
  }
  const { seen, ids, lost = false, ...rest } = state
  const cursors = seen === '' ? null : SeenCursors.from(Buffer.from(seen, 'base64'))
  return { ...identity, ...rest, lost, seen: cursors, ids: ids.map(blobRef) }
}

export function chainEntry(
  chain: number,
  query: string,
  windows: WindowRun,
  feed: FeedProgress | null = null,
  schema = 0,
): ChainEntry {
  const { order, bounds } = windows
  return {
    kind: 'chain',
    chain,
    query,
    order,
    windows: bounds === null ? null : spansOf(bounds),
    feed: feed ?? undefined,
    schema: schema || undefined,
  }
}

/** The entry that replaces all others about a chain when the journal is compacted. */
export function chainSnapshot(folded: FoldedChain): ChainEntry {
  const { chain, query, windows, feed, schema, seen, ids, lost, ...progress } = folded
  return {
    ...chainEntry(chain, query, windows, feed, schema),
    state: {
      ...progress,
      seen: seen === null ? '' : Buffer.from(seen.toBytes()).toString('base64'),
      ids: ids.map(blobTuple),
      lost: lost || undefined,
    },
  }
}

/** The chain after a page that is not its last. @param ids of the page; null: it has none */
export function afterPage(folded: FoldedChain, page: PageEntry, ids: BlobRef | null): FoldedChain {
  if (folded.feed !== null) return afterPageOfFeed(folded, folded.feed, page, ids)
  const { position = folded.position } = page
  const kept = ids === null ? folded.ids : lastOf(folded.ids, page.ids?.keep ?? 0)
  return {
    ...folded,
    next: page.next,
    watermark: page.watermark ?? folded.watermark,
    pages: folded.pages + 1,
    position,
    seen: withCursor(folded.seen, folded.next),
    ids: ids === null ? kept : [...kept, ids],
    truncated: folded.truncated || kept.length < folded.ids.length,
    size: page.size ?? folded.size,
  }
}

function afterPageOfFeed(
  folded: FoldedChain,
  feed: FeedProgress,
  page: PageEntry,
  ids: BlobRef | null,
): FoldedChain {
  const isOver = page.feed?.over ?? page.next === null
  const size = page.size ?? folded.size
  const { next } = page
  const after = afterFeedPage(feed, folded.ids, { ids, cursor: folded.next, size, next, isOver }, countOfBlob)
  return {
    ...folded,
    ...after,
    pages: folded.pages + 1,
    schema: page.schema ?? folded.schema,
    ...(isOver
      ? { next: after.feed.end, size: after.feed.end_size, seen: null }
      : { next, size, seen: withCursor(folded.seen, folded.next) }),
  }
}

/** Whether all items so far came in order of `imported_at`. */
export function isInOrder(folded: FoldedChain | undefined): boolean {
  return (folded?.position?.late ?? 0) === 0
}

export type LoggedIds = {
  readonly ids: PageIds
  /** The last instant, in the order of its chain, of any row of this page or of those before it, µs; null: there is none. */
  readonly until: bigint | null
}

const HEAD_WORDS = 3
/** No time of a row: years have four digits. */
const NO_TIME = -(2n ** 63n)

/** `until` in two words, the number of words of rows, then the words of rows and of rejected items. */
export function encodeIds({ ids: { rows, rejected }, until }: LoggedIds): Uint8Array {
  const words = new Int32Array(HEAD_WORDS + rows.length + rejected.length)
  const time = until ?? NO_TIME
  words[0] = Number(BigInt.asIntN(32, time))
  words[1] = Number(BigInt.asIntN(32, time >> 32n))
  words[2] = rows.length
  words.set(rows, HEAD_WORDS)
  words.set(rejected, HEAD_WORDS + rows.length)
  return new Uint8Array(words.buffer)
}

export function decodeIds(bytes: Uint8Array): LoggedIds {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2)
  const time = (BigInt(words[1]!) << 32n) | BigInt(words[0]! >>> 0)
  const end = HEAD_WORDS + words[2]!
  return {
    ids: { rows: words.slice(HEAD_WORDS, end), rejected: words.slice(end) },
    until: time === NO_TIME ? null : time,
  }
}

/** Ids in the bytes of `encodeIds`. */
export function countOfBlob({ bytes }: BlobRef): number {
  return (bytes - 4 * HEAD_WORDS) / 8
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
