import { ExportError, type JournalEntry, type NamedPipeline } from '../../core/index.ts'
import { type CheckpointState, isKnown, secretCheck } from '../../state/index.ts'
import type { QuerySecrets } from '../setting/query-secrets.ts'

/** A secret query's name, its variable, and what tells its secret from another. */
export type SecretCheck = { readonly query: string; readonly variable: string; readonly check: string }

/**
 * What tells the secrets of a pipeline's queries from others. None unless secrets are masked by hmac: nobody who chose
 * another policy has put digests of secrets on disk, and without a key there must be none.
 */
export function secretChecks(
  { extract, transform }: NamedPipeline,
  secrets: QuerySecrets,
  maskKey: Uint8Array | null,
): readonly SecretCheck[] {
  if (maskKey === null || transform.secret !== 'hmac') return []
  return extract.queries.flatMap((query) => {
    if (query.type !== 'secret') return []
    const secret = secrets.get(query.secretEnv)
    if (secret === undefined) return []
    return [{ query: query.name, variable: query.secretEnv, check: secretCheck(maskKey, secret) }]
  })
}

/**
 * Rows of two secrets under one name would be two queries that nobody can tell apart.
 * @throws ExportError `config` naming the variables that hold another secret than the one whose rows are exported
 */
export function requireSameSecrets(
  found: CheckpointState,
  checks: readonly SecretCheck[],
  file: string,
): void {
  const changed = checks
    .filter(({ query, check }) => (found.secretChecks.get(query) ?? check) !== check && isKnown(found, query))
    .map(({ variable }) => variable)
  if (changed.length === 0) return
  throw new ExportError(
    'config',
    `Another secret than the one that rows were exported for is now in ${changed.join(', ')}`,
    file,
    'Restore the value, name another variable for another secret, write to another load.path, or start over with --fresh.',
  )
}

/** Lines for what the checkpoint does not say yet. */
export function newChecks(found: CheckpointState, checks: readonly SecretCheck[]): readonly JournalEntry[] {
  return checks
    .filter(({ query, check }) => found.secretChecks.get(query) !== check)
    .map(({ query, check }) => ({ kind: 'secret', query, check }))
}
