import {
  type AddressKey,
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
  type ServiceSettings,
  type Window,
} from '../core/index.ts'
import { BASIC, type ServiceRequest } from './sending/outgoing.ts'
import { TENANT } from './sending/responses.ts'

export type Endpoints = {
  readonly search: URL
  readonly reports: URL
  /** @param id of an identifier, where the address has one */
  readonly feed: (key: AddressKey, id: number | null) => URL
}

export function endpointsOf({ baseUrl, addresses }: ServiceSettings): Endpoints {
  return {
    search: endpoint(baseUrl, addresses.search_path),
    reports: endpoint(baseUrl, addresses.report_path),
    feed: (key, id) => endpoint(baseUrl, addresses[key].replaceAll('{id}', String(id))),
  }
}

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
        // `GET {report_path}/?from=&size=&order=`. Source: public API documentation.
        url: withQuery(withPath(endpoints.reports, ''), { from: cursor, size, order: chain.order }),
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

function feedUrl(endpoints: Endpoints, resource: Resource, query: FeedQuery): URL {
  const [ofTenant, ofIdentifier] = rulesOf(resource).addresses
  return query.type === 'tenant' ? endpoints.feed(ofTenant!, null) : endpoints.feed(ofIdentifier!, query.id)
}

/** `GET {feed_path}?size=&from=&order_type=`; an identifier's feed has no order. Source: public API documentation. */
function feedRequests(feed: URL, { query, order }: ChainRequest): RequestFor {
  const subject = query.type === 'identifier' ? `identifier ${query.id}` : TENANT
  return (cursor, about, size) => {
    const url = withQuery(feed, { size, from: cursor, order_type: query.type === 'tenant' ? order : null })
    return { ...BASIC, url, about, tier: 'feed', hasCursor: cursor !== null, size, feed: subject }
  }
}

function withPath(base: URL, last: string): URL {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${last}`
  return url
}

function withQuery(base: URL, parameters: Readonly<Record<string, string | number | null>>): URL {
  const url = new URL(base)
  for (const [name, value] of Object.entries(parameters))
    if (value !== null) url.searchParams.set(name, String(value))
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
function searchBody(chain: ChainRequest, query: object, cursor: string | null, size: number): object {
  const { include, order } = chain
  const importedAt = importedAtFilter(chain)
  return {
    query,
    ...(importedAt === null ? {} : { filters: { imported_at: importedAt } }),
    ...(cursor === null ? {} : { from: cursor }),
    size,
    ...(include.length === 0 ? {} : { include }),
    order,
  }
}

/** The service includes both bounds. A row exactly at a window's end is assigned to the next window later. */
function importedAtFilter({ requested, since, order }: ChainRequest): object | null {
  const gte = order === 'asc' && since !== null ? since : requested?.from
  const lte = order === 'desc' && since !== null ? since : requested?.until
  const bounds = Object.entries({ gte, lte }).flatMap(([name, at]) =>
    at === undefined ? [] : [[name, formatInstant(int64FromJson(at))]],
  )
  return bounds.length === 0 ? null : Object.fromEntries(bounds)
}

/** @param pathOrUrl absolute, or a path below the base */
export function endpoint(baseUrl: string, pathOrUrl: string): URL {
  if (/^https?:\/\//i.test(pathOrUrl)) return new URL(pathOrUrl)
  return new URL(`${baseUrl.replace(/\/+$/, '')}/${pathOrUrl.replace(/^\/+/, '')}`)
}

/** Names a request in messages. Without the query string: cursors are long and unreadable. */
export function whereOf(method: string, url: URL, about: string): string {
  return `${method} ${url.origin}${url.pathname}, ${about}`
}
