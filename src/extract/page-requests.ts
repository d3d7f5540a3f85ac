import {
  type FeedQuery,
  formatInstant,
  type Int64Json,
  int64FromJson,
  learnSecret,
  type NamedQuery,
  type Order,
  queryLabel,
  type Resource,
  rulesOf,
  SEARCHES,
  type SearchQuery,
  type Window,
} from '../core/index.ts'
import type { Endpoints } from './endpoints.ts'
import { BASIC } from './sending/outgoing.ts'
import { TENANT } from './sending/responses.ts'
import type { ServiceRequest } from './service.ts'

/** What the pages of a chain are requested with. */
export type ChainRequest = {
  readonly resource: Resource
  readonly query: NamedQuery
  /** The requested range, both ends included, the same on every page; null: everything. */
  readonly requested: Window | null
  /** As in `PageContext`. */
  readonly since: Int64Json | null
  readonly include: readonly string[]
  readonly order: Order
  /** The value of a secret query, the same for all of its chains in a run; null for other queries. */
  readonly secret: string | null
}

type RequestFor = (cursor: string | null, about: string, size: number) => ServiceRequest

/** Builds the requests of a chain's pages; only cursor and size differ between them. */
export function requestsFor(endpoints: Endpoints, chain: ChainRequest): RequestFor {
  const { query } = chain
  switch (query.type) {
    case 'report':
      return (_cursor, about) => reportRequest(endpoints.reports, query.id, about)
    case 'reports':
      return (cursor, about, size) => ({
        ...BASIC,
        url: listUrl(endpoints.reports, chain, cursor, size),
        about,
        size,
        hasCursor: cursor !== null,
      })
    case 'tenant':
    case 'identifier':
      return feedRequests(feedUrl(endpoints, chain.resource, query), chain)
    default: {
      const searched = searchedQuery(query, chain.secret)
      return (cursor, about, size) => ({
        method: 'POST',
        url: endpoints.search,
        tier: 'search',
        body: searchBody(chain, searched, cursor, size),
        about,
        hasCursor: cursor !== null,
        size,
      })
    }
  }
}

/** `GET {report_path}/{id}`. Source: service spec 4.1. */
export function reportRequest(reports: URL, id: number, about: string): ServiceRequest {
  return { ...BASIC, url: withPath(reports, String(id)), about }
}

/** `GET {report_path}/?from=&size=&order=`. Source: public API documentation. */
function listUrl(reports: URL, { order }: ChainRequest, cursor: string | null, size: number): URL {
  const url = withPath(reports, '')
  if (cursor !== null) url.searchParams.set('from', cursor)
  url.searchParams.set('size', String(size))
  url.searchParams.set('order', order)
  return url
}

function feedUrl(endpoints: Endpoints, resource: Resource, query: FeedQuery): URL {
  const [ofTenant, ofIdentifier] = rulesOf(resource).addresses
  return query.type === 'tenant' ? endpoints.feed(ofTenant!, null) : endpoints.feed(ofIdentifier!, query.id)
}

/** `GET {feed_path}?size=&from=&order_type=`; an identifier's feed has no order. Source: public API documentation. */
function feedRequests(feed: URL, { query, order }: ChainRequest): RequestFor {
  const subject = query.type === 'identifier' ? `identifier ${query.id}` : TENANT
  return (cursor, about, size) => {
    const url = new URL(feed)
    url.searchParams.set('size', String(size))
    if (cursor !== null) url.searchParams.set('from', cursor)
    if (query.type === 'tenant') url.searchParams.set('order_type', order)
    return { ...BASIC, url, about, tier: 'feed', hasCursor: cursor !== null, size, feed: subject }
  }
}

function withPath(base: URL, last: string): URL {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${last}`
  return url
}

/** A query in the form of the credential search. Source: public API. */
function searchedQuery(query: SearchQuery, secret: string | null) {
  const { type } = query
  if (type !== 'secret') return { type, [SEARCHES[type].by]: queryLabel(query) }
  if (secret === null) throw new Error('a secret query without its secret')
  learnSecret(secret)
  return { type, secret }
}

/** The body of one search request. Only `from` and `size` differ from page to page. Source: service spec 4.2. */
function searchBody(chain: ChainRequest, query: object, cursor: string | null, size: number): string {
  const { include, order } = chain
  const importedAt = importedAtFilter(chain)
  return JSON.stringify({
    query,
    ...(importedAt === null ? {} : { filters: { imported_at: importedAt } }),
    ...(cursor === null ? {} : { from: cursor }),
    size,
    ...(include.length === 0 ? {} : { include }),
    order,
  })
}

/** The service includes both bounds. A row exactly at a window's end is assigned to the next window later. */
function importedAtFilter({ requested, since, order }: ChainRequest): { gte?: string; lte?: string } | null {
  const gte = order === 'asc' && since !== null ? since : requested?.from
  const lte = order === 'desc' && since !== null ? since : requested?.until
  if (gte === undefined && lte === undefined) return null
  return { ...bound('gte', gte), ...bound('lte', lte) }
}

function bound(name: 'gte' | 'lte', at: Int64Json | undefined): { gte?: string; lte?: string } {
  return at === undefined ? {} : { [name]: formatInstant(int64FromJson(at)) }
}
