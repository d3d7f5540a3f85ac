import { ExportError, type Pipeline } from '../../core/index.ts'
import type { Restart } from '../../rows/index.ts'
import type { FoldedChain } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'

/** The resume position after the last committed row; `since` null: the chain's beginning. */
export type RestartPoint = { readonly since: Restart | null }

/**
 * The position from which a chain can resume without its cursors, with pages of another size. Only where the pipeline
 * has windows: a service that ignores a filter that nobody asked for would end a healthy export.
 * @param pages committed in this run
 * @returns null if rows might be repeated or lost, or belong to another secret
 */
export function restartPoint(
  chain: ChainProgress,
  pages: number,
  { transform }: Pipeline,
): RestartPoint | null {
  const { folded, query } = chain
  if (folded === undefined || chain.requested === null) return null
  if (!chain.hasItems()) return { since: null }
  // The service rejects the cursor of another secret. Until it accepts this one, the variable may have changed.
  if (query.type === 'secret' && transform.secret !== 'hmac' && pages === 0) return null
  return lastRowOf(folded)
}

/**
 * The position from which a chain resumes after its cursors were rejected or its last ids are lost.
 * @param cause the service's error for its cursor
 * @throws ExportError `refused` when there is no position from which rows are neither repeated nor lost
 */
export function requiredRestart(
  chain: ChainProgress,
  why: string,
  pipeline: Pipeline,
  cause?: ExportError,
): RestartPoint {
  const { folded, current } = chain
  if (folded === undefined) throw cause ?? new Error('a chain without a page has nothing to lose')
  // With neither rows nor rejected items committed, it can start from its beginning.
  if (!chain.hasItems()) return { since: null }
  if (cause !== undefined) requireSameSecret(chain, pipeline, cause)
  const point = lastRowOf(folded)
  if (point !== null) return point
  const reason =
    folded.position === null
      ? 'the rows did not come in order of imported_at'
      : 'too many of the last rows have the same imported_at'
  throw new ExportError({
    kind: 'refused',
    what: `${why}, and ${reason}, so there is no safe resume position`,
    where: current.key,
    next: 'Export this query to another load.path, or start over with --fresh.',
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The position after the last committed row; null: it is not known. */
function lastRowOf({ position }: FoldedChain): RestartPoint | null {
  if (position === null || position.ids === null) return null
  return { since: { at: position.at, ids: position.ids } }
}

/**
 * A service rejects the cursor of another query. For a secret query, the variable may have changed. Only if secrets are
 * masked by hmac has the checkpoint already shown that it has not.
 */
function requireSameSecret(
  { query, current }: ChainProgress,
  { transform }: Pipeline,
  cause: ExportError,
): void {
  if (query.type !== 'secret' || transform.secret === 'hmac') return
  throw new ExportError({
    kind: 'refused',
    what: `The service refuses the saved cursor, and it is not known whether ${query.secretEnv} still holds the secret whose rows are exported`,
    where: current.key,
    next: `If ${query.secretEnv} was changed, restore it and run again; if it was not, the cursor has expired: export the query to another load.path, or start over with --fresh.`,
    cause,
  })
}
