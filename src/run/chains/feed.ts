import { ExportError, type FeedQuery } from '../../core/index.ts'
import type { FoldedChain } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'

/**
 * Whether new rows may come at the front of a feed, too: an identifier's endpoint has no parameter for the order. The
 * tenant's is requested oldest first.
 */
export function hasFront({ type }: FeedQuery): boolean {
  return type === 'identifier'
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
