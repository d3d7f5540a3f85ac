import {
  type DecodedPage,
  type DecodePage,
  ExportError,
  type PageContext,
  type Partition,
  type Position,
  type Query,
} from '../core/index.ts'
import { listUrl, reportRequest, reportUrl } from './report-request.ts'
import { type SearchQuery, searchBody } from './search-body.ts'
import type { SeenCursors } from './seen-cursors.ts'
import type { Service, ServiceRequest } from './service.ts'

/** One chain of cursors, from its beginning or from where a checkpoint left it. */
export type Chain = {
  readonly partition: Partition
  readonly include: readonly string[]
  readonly order: 'asc' | 'desc'
  readonly pageSize: number
  /** Where to go on; null: from the beginning. */
  readonly cursor: string | null
  /** Set when the chain starts again from rows already exported. */
  readonly since: Position | null
  /** Pages answered before. */
  readonly page: number
  /** The `query_value` column. */
  readonly queryValue: string
  /** Every cursor met in this chain; grows before the page that brings one is yielded. */
  readonly seen: SeenCursors
  /** Called each time a request of this chain is sent. */
  readonly onRequest: () => void
}

export type ExtractedPage = {
  readonly page: DecodedPage
  /** Sent for this page, retries included. */
  readonly requests: number
}

// An empty page is no end, yet a service that sends nothing else would cost searches for ever.
const MAX_EMPTY_PAGES = 100

/**
 * Follows a chain of cursors to its end. The next page is asked for only when the consumer comes back,
 * so at most one page is on its way to the disk. `next` alone decides: short and empty pages go on.
 * @throws ExportError `data` when a cursor comes twice or nothing but empty pages come; else as `Service.request`
 */
export async function* extractPages(
  service: Service,
  chain: Chain,
  decode: DecodePage,
): AsyncGenerator<ExtractedPage, void, undefined> {
  const requestFor = await requests(service, chain)
  let { cursor, page } = chain
  if (cursor !== null) chain.seen.add(cursor)
  for (let emptyPages = 0; ; page++) {
    const about = `${chain.partition.key}, page ${page + 1}`
    const context: PageContext = {
      partition: chain.partition,
      page,
      queryValue: chain.queryValue,
      since: chain.since,
    }
    const read = (body: Uint8Array) => decode(body, context)
    const answer = await service.request(requestFor(cursor, about), read, chain.onRequest)
    const { next, items } = answer.value
    if (next !== null) {
      if (chain.seen.has(next)) throw repeatedCursor(about)
      chain.seen.add(next)
    }
    yield { page: answer.value, requests: answer.requests }
    if (next === null) return
    emptyPages = items === 0 ? emptyPages + 1 : 0
    if (emptyPages >= MAX_EMPTY_PAGES) throw nothingButEmptyPages(about)
    cursor = next
  }
}

/** How the pages of this chain are asked for; everything but the cursor is settled once. */
async function requests(
  service: Service,
  chain: Chain,
): Promise<(cursor: string | null, about: string) => ServiceRequest> {
  const { query, window } = chain.partition
  switch (query.type) {
    case 'report': {
      const url = reportUrl(service, query.id)
      return (_cursor, about) => reportRequest(url, about, false)
    }
    case 'reports':
      return (cursor, about) => reportRequest(listUrl(service, chain, cursor), about, cursor !== null)
    default: {
      const searchQuery = await asSearchQuery(service, query)
      const secrets = searchQuery.type === 'secret' ? [searchQuery.secret] : []
      return (cursor, about) => ({
        method: 'POST',
        url: service.endpoints.search,
        tier: 'search',
        body: searchBody({ ...chain, query: searchQuery, window }, cursor),
        about,
        hasCursor: cursor !== null,
        secrets,
      })
    }
  }
}

async function asSearchQuery(
  service: Service,
  query: Exclude<Query, { type: 'report' | 'reports' }>,
): Promise<SearchQuery> {
  if (query.type !== 'secret') return query
  return { type: 'secret', secret: await service.readSecret(query.secretEnv) }
}

function repeatedCursor(about: string): ExportError {
  return new ExportError(
    'data',
    'The service sent a cursor that this chain has had before, so it would never end',
    about,
    'Run again; if it stays so, report it to the service with the name of the query.',
  )
}

function nothingButEmptyPages(about: string): ExportError {
  return new ExportError(
    'data',
    `The service sent ${MAX_EMPTY_PAGES} empty pages in a row and still more to come`,
    about,
    'Run again to go on from there.',
  )
}
