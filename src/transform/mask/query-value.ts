import { type Query, queryLabel } from '../../core/index.ts'
import { type MaskPolicies, masksOf, maskText, REDACTED } from './mask.ts'

/**
 * The `query_value` column: the value of the query. A secret is masked by the secret policy, an address or keyword
 * by that of identities; either is the constant where its policy drops it.
 * @param secretValue the secret of a secret query, from its variable; null for every other kind
 */
export function maskedQueryValue(query: Query, secretValue: string | null, policies: MaskPolicies): string {
  switch (query.type) {
    case 'secret':
      return secretValue === null ? REDACTED : maskText(masksOf(policies).secret, secretValue)
    case 'email':
    case 'keyword':
      return identityHider(policies)(queryLabel(query))
    case 'domain':
    case 'auth_domain':
    case 'report':
    case 'reports':
    case 'tenant':
    case 'identifier':
      return queryLabel(query)
  }
}

/** Makes of an identity what rows hold. */
export function identityHider({
  identity,
  maskKey,
}: Pick<MaskPolicies, 'identity' | 'maskKey'>): (text: string) => string {
  const mask = masksOf({ secret: 'redact', identity, maskKey }).identity
  return (text) => maskText(mask, text)
}
