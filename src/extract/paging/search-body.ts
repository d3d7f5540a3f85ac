import {
  formatInstant,
  type Int64Json,
  int64FromJson,
  type Order,
  type Restart,
  type Window,
} from '../../core/index.ts'

export type Search = {
  readonly query: SearchQuery
  readonly window: Window | null
  /** Set when the chain starts again from rows already exported. */
  readonly since: Restart | null
  readonly pageSize: number
  readonly include: readonly string[]
  readonly order: Order
}

/** The query kinds of the credential search as the service takes them; `secret` is the secret's value. */
export type SearchQuery =
  | { readonly type: 'domain' | 'auth_domain'; readonly fqdn: string }
  | { readonly type: 'email'; readonly email: string }
  | { readonly type: 'keyword'; readonly keyword: string }
  | { readonly type: 'secret'; readonly secret: string }

/**
 * The body of one search request. Only `from` differs from page to page.
 * Source: service spec 4.2; query shapes from the public API.
 */
export function searchBody(search: Search, cursor: string | null): string {
  const { pageSize, include, order } = search
  const importedAt = importedAtFilter(search)
  return JSON.stringify({
    query: search.query,
    ...(importedAt === null ? {} : { filters: { imported_at: importedAt } }),
    ...(cursor === null ? {} : { from: cursor }),
    size: pageSize,
    ...(include.length === 0 ? {} : { include }),
    order,
  })
}

/** Both bounds are inclusive at the service; a row exactly at the window's end is left to the next window later. */
function importedAtFilter({ window, since, order }: Search): { gte?: string; lte?: string } | null {
  const gte = order === 'asc' && since !== null ? since.at : window?.from
  const lte = order === 'desc' && since !== null ? since.at : window?.until
  if (gte === undefined && lte === undefined) return null
  return { ...bound('gte', gte), ...bound('lte', lte) }
}

function bound(name: 'gte' | 'lte', at: Int64Json | undefined): { gte?: string; lte?: string } {
  return at === undefined ? {} : { [name]: formatInstant(int64FromJson(at)) }
}
