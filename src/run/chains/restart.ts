import { ExportError, type Pipeline, type Restart } from '../../core/index.ts'
import type { ChainRecord } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'

/** A position after the last committed row; `since` null: the chain's beginning. */
export type RestartPoint = { readonly since: Restart | null }

/**
 * Where a chain can go on without its cursors.
 * @param pages committed in this run
 * @returns null where rows might come twice or be lost, or be those of another secret
 */
export function restartPoint(
  chain: ChainProgress,
  pages: number,
  { transform }: Pipeline,
): RestartPoint | null {
  const { record, query } = chain
  if (record === undefined) return null
  if (!chain.hasItems()) return { since: null }
  // The service refuses the cursor of another secret. Until it has taken this one, the variable may have changed.
  if (query.type === 'secret' && transform.secret !== 'hmac' && pages === 0) return null
  return lastRowOf(record)
}

/**
 * Where a chain goes on whose cursors are refused, or whose last ids are lost.
 * @param cause what the service said of its cursor
 * @throws ExportError `refused` when there is no position from which rows neither come twice nor are lost
 */
export function requiredRestart(
  chain: ChainProgress,
  why: string,
  pipeline: Pipeline,
  cause?: ExportError,
): RestartPoint {
  const { record, current } = chain
  if (record === undefined) throw cause ?? new Error('a chain without a page has nothing to lose')
  // With neither rows nor rejected items committed, it can start from its beginning.
  if (!chain.hasItems()) return { since: null }
  if (cause !== undefined) requireSameSecret(chain, pipeline, cause)
  const point = lastRowOf(record)
  if (point !== null) return point
  const reason =
    record.position === null
      ? 'the rows did not come in order of imported_at'
      : 'the last rows have one and the same imported_at in great number'
  throw new ExportError(
    'refused',
    `${why}, and ${reason}, so there is no safe place to go on`,
    current.key,
    'Export this query to another load.path, or start over with --fresh.',
    cause === undefined ? {} : { cause },
  )
}

/** Behind its last committed row; null: no row is known to be the last. */
function lastRowOf({ position }: ChainRecord): RestartPoint | null {
  if (position === null || position.ids === null) return null
  return { since: { at: position.at, ids: position.ids } }
}

/**
 * A service refuses the cursor of another query; for a secret query that may be one whose variable has changed. Only
 * where secrets are masked by hmac has the checkpoint told already that it has not.
 */
function requireSameSecret(
  { query, current }: ChainProgress,
  { transform }: Pipeline,
  cause: ExportError,
): void {
  if (query.type !== 'secret' || transform.secret === 'hmac') return
  throw new ExportError(
    'refused',
    `The service refuses the saved cursor, and nothing tells whether ${query.secretEnv} still holds the secret whose rows are exported`,
    current.key,
    `If ${query.secretEnv} was changed, restore it and run again; if it was not, the cursor has expired: export the query to another load.path, or start over with --fresh.`,
    { cause },
  )
}
