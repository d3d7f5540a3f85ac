import { ExportError, type FeedQuery } from '../../core/index.ts'
import type { Times } from '../../rows/index.ts'
import type { FeedProgress, FoldedChain } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'

/** Where new rows of a feed come: at its end, at its front, or not known yet. */
type FeedOrder = 'oldest first' | 'newest first' | 'unknown'

// With fewer pairs of rows, or less of a majority, rows that came late could be taken for the order.
const MIN_PAIRS = 20
const MAJORITY = 0.75
// A feed of few rows: this many passes to its end found new rows there, and none at its front.
const MIN_GROWN = 2
/** So often, in passes, the front of such a feed is read all the same. */
const FRONT_EVERY = 30

/**
 * The order of a feed by its rows so far. An identifier's endpoint has no parameter for it, so as long as it is not
 * known, such a feed is read at both ends. The tenant's is requested oldest first; rows that come the other way show a
 * service that ignores that.
 */
export function orderOf(
  { rising, falling }: Pick<FeedProgress, 'rising' | 'falling'>,
  { type }: FeedQuery,
): FeedOrder {
  const pairs = rising + falling
  if (pairs >= MIN_PAIRS && rising >= MAJORITY * pairs) return 'oldest first'
  if (pairs >= MIN_PAIRS && falling >= MAJORITY * pairs) return 'newest first'
  return type === 'tenant' ? 'oldest first' : 'unknown'
}

/** Whether the front of a feed has to be read, after or before a pass to its end. */
export function isFrontDue(feed: FeedProgress, query: FeedQuery): boolean {
  const order = orderOf(feed, query)
  if (order !== 'unknown') return order === 'newest first'
  return feed.grown < MIN_GROWN || feed.unread >= FRONT_EVERY
}

/** Pairs of adjacent rows of which the second was imported later, or earlier. */
export function pairsOf(times: Times | null): { readonly rising: number; readonly falling: number } {
  let [rising, falling] = [0, 0]
  for (let row = 1; row < (times?.length ?? 0); row++) {
    if (times![row]! > times![row - 1]!) rising++
    else if (times![row]! < times![row - 1]!) falling++
  }
  return { rising, falling }
}

/** A feed can only begin again where all rows of its pass are known by their ids: at the front. */
export function mayBeginAgain({ feed }: FoldedChain): boolean {
  return feed !== null && !feed.forgot && (feed.pass === 'whole' || feed.pass === 'front')
}

/** @param cause the service's error for its cursor */
export function lostPlace(chain: ChainProgress, why: string, cause?: ExportError): ExportError {
  const { query, current } = chain
  // A glob would name the pruned windows, too, and bring them back.
  const redo = chain.isPruned ? current.key : `${query.name}/*`
  return new ExportError({
    kind: 'refused',
    what: `${why}, and a feed can be read on from nowhere else without losing or doubling rows`,
    where: current.key,
    next: `Run with --redo '${redo}': it reads the feed again from its beginning, and what is exported stays until that is complete. Nothing was skipped.`,
    ...(cause === undefined ? {} : { cause }),
  })
}
