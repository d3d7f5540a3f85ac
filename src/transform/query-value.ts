import { type Query, queryLabel } from '../core/index.ts'
import { type MaskPolicies, masksOf, maskText, REDACTED } from './mask.ts'

/**
 * The `query_value` column: what the query asked for. A secret is masked by the secret policy, and is the
 * constant where that policy drops it.
 * @param secretValue the secret of a secret query, from its variable; null for every other kind
 */
export function maskedQueryValue(query: Query, secretValue: string | null, policies: MaskPolicies): string {
  if (query.type !== 'secret') return queryLabel(query)
  return secretValue === null ? REDACTED : maskText(masksOf(policies).secret, secretValue)
}
