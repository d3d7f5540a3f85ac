import { IDENTITY_POLICIES, type IdentityPolicy } from './policies.ts'

/** The member with the value (of a secret query the name of its variable), and how much of an identity that is. */
export const SEARCHES = {
  domain: { by: 'fqdn', identity: 'none' },
  auth_domain: { by: 'fqdn', identity: 'none' },
  email: { by: 'email', identity: 'whole' },
  keyword: { by: 'keyword', identity: 'part' },
  secret: { by: 'secretEnv', identity: 'none' },
} as const satisfies Record<string, { readonly by: string; readonly identity: 'none' | 'part' | 'whole' }>

type Searches = typeof SEARCHES

/** `as`: the user's name for it; without one it is named after its value. */
export type SearchQuery = {
  [Type in keyof Searches]: { readonly type: Type; readonly as?: string } & {
    readonly [Member in Searches[Type]['by']]: string
  }
}[keyof Searches]

export type Query =
  | SearchQuery
  | { readonly type: 'report'; readonly id: number }
  | { readonly type: 'reports' }
  | FeedQuery

/** The credentials of the token's tenant, or of one of its identifiers, as they come. */
export type FeedQuery = { readonly type: 'tenant' } | { readonly type: 'identifier'; readonly id: number }

/** The name is for paths, keys, logs and messages (`domain.acme.com`). A hidden identity's depends on the mask key. */
export type NamedQuery = Query & { readonly name: string }

/** Whether rows are read from a feed, which has no end and takes no filter. */
export function isFeed<Q extends Query>(query: Q): query is Q & FeedQuery {
  return query.type === 'tenant' || query.type === 'identifier'
}

export function hidesIdentity(query: Query, identity: IdentityPolicy): boolean {
  // A policy that is not known hides, too.
  return identityIn(query.type) !== 'none' && IDENTITY_POLICIES[identity]?.shows !== true
}

/** How much of an identity the value of a query is. @param type of a query; any other text: none of it */
export function identityIn(type: string): 'none' | 'part' | 'whole' {
  return isSearch(type) ? SEARCHES[type].identity : 'none'
}

export function isSearch(type: string): type is SearchQuery['type'] {
  return Object.hasOwn(SEARCHES, type)
}

/** The value of a query, or the variable that holds its secret. {@link hidesIdentity} says when to hide it. */
export function queryLabel(query: Query): string {
  switch (query.type) {
    case 'report':
    case 'identifier':
      return String(query.id)
    case 'reports':
      return 'all'
    case 'tenant':
      return 'tenant'
    default:
      return (query as unknown as Readonly<Record<string, string>>)[SEARCHES[query.type].by]!
  }
}

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
