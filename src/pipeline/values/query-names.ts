import {
  hidesIdentity,
  type IdentityPolicy,
  isFeed,
  type NamedQuery,
  type Query,
  queryLabel,
} from '../../core/index.ts'

/** `<type>.<label>` or `feed.<label>`, percent-encoded outside `[A-Za-z0-9._@-]`. @param label {@link visibleLabel} */
export function nameQuery(query: Query, label: string): NamedQuery {
  return { ...query, name: `${isFeed(query) ? 'feed' : query.type}.${encodeSegment(label)}` }
}

/** The user's name for a query, else its value: what needs no mask key. Null: an identity that the policy hides. */
export function visibleLabel(query: Query, identity: IdentityPolicy): string | null {
  return ('as' in query ? query.as : undefined) ?? (hidesIdentity(query, identity) ? null : queryLabel(query))
}

function encodeSegment(value: string): string {
  // encodeURIComponent throws on lone surrogates, leaves !'()*~ as they are and encodes @.
  return encodeURIComponent(value.toWellFormed())
    .replaceAll('%40', '@')
    .replace(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
