import { type DecodedPage, type DecodePage, ExportError, MAX_CURSOR_BYTES } from '../core/index.ts'
import type { Chain } from './chain.ts'
import { type PageInFlight, requestPages } from './page-in-flight.ts'
import type { Service } from './service.ts'

export type ExtractedPage = {
  readonly page: DecodedPage
  /** Requests sent for this page, retries included. */
  readonly requests: number
  /** Rows that were requested. */
  readonly size: number
  /** How long the response took. */
  readonly ms: number
  /** Whether the following pages may be larger: no other page is in flight, so the chain can drop its cursors. */
  readonly mayGrow: boolean
}

// An empty page does not end a chain, nor does a page of repeated rows. But a service that sends nothing else would
// cost searches without end.
const MAX_EMPTY_PAGES = 100

/**
 * Follows a chain of cursors to its end. Only a missing `next` ends it: short and empty pages do not. If
 * `chain.prefetch` has a slot, the next page is requested as soon as its cursor arrives; otherwise when the consumer
 * requests it. At most one page is prefetched. A chain may be over before its last page: see `Chain.isOver`. The
 * consumer may stop after a page with `mayGrow`, to continue with larger pages.
 * @param release called with decoded pages that the consumer does not get
 * @throws ExportError `data` when a cursor is repeated or too long, or when pages without new rows keep coming; else as
 *   `Service.request`
 */
export async function* extractPages(
  service: Service,
  chain: Chain,
  decode: DecodePage,
  release: (page: DecodedPage) => void = () => {},
): AsyncGenerator<ExtractedPage, void, undefined> {
  const request = requestPages(service, chain, decode, release, (page) => {
    if (page === current) prefetchNext()
  })
  if (chain.cursor !== null) chain.seen.add(chain.cursor)
  let page = chain.page
  let current = request(chain.cursor, page, chain.recent)
  let following: PageInFlight | null = null
  let emptyPages = 0
  const prefetchNext = (): void => {
    const { next } = current
    if (following !== null || next === null || chain.seen.has(next)) return
    // After an empty page, the next may exceed the limit of empty pages.
    if (emptyPages > 0 || chain.sizing?.mayGrowNext === true || !chain.prefetch.take()) return
    following = request(next, page + 1, current.known)
  }
  /** @returns the requests that were sent for it */
  const dropFollowing = (): number => {
    if (following === null) return 0
    const { requests } = following
    following.abort()
    following = null
    chain.prefetch.give()
    return requests
  }

  try {
    for (let wasted = chain.requestsBefore; ; page++) {
      prefetchNext()
      const decoded = await current.response
      const { next } = decoded
      // The first response may have been broken, and a retry may have returned another one.
      if ((following as PageInFlight | null)?.cursor !== next) wasted += dropFollowing()
      if (next !== null && Buffer.byteLength(next) > MAX_CURSOR_BYTES) {
        throw longCursor(Buffer.byteLength(next), current.about)
      }
      if (next !== null && chain.seen.has(next)) throw repeatedCursor(current.about)
      current.next = next
      prefetchNext()
      if (next !== null) chain.seen.add(next)
      current.isHandedOut = true
      const { ms } = current
      const grows = chain.sizing?.served({ ms, isNew: decoded.items > decoded.repeated }) === true
      const mayGrow = grows && following === null
      yield { page: decoded, requests: current.requests + wasted, size: chain.pageSize, ms, mayGrow }
      if (next === null || chain.isOver()) return
      wasted = 0
      emptyPages = decoded.items === decoded.repeated ? emptyPages + 1 : 0
      if (emptyPages >= MAX_EMPTY_PAGES) throw nothingButEmptyPages(current.about)
      if (following === null) current = request(next, page + 1, current.known)
      else {
        current = following
        following = null
        chain.prefetch.give()
      }
    }
  } finally {
    current.abort()
    dropFollowing()
  }
}

function repeatedCursor(about: string): ExportError {
  return new ExportError({
    kind: 'data',
    what: 'The service repeated a cursor of this chain, which would never end',
    where: about,
    next: 'Run again. If the error persists, report it to the service with the name of the query.',
  })
}

function longCursor(bytes: number, about: string): ExportError {
  return new ExportError({
    kind: 'data',
    what: `The service sent a cursor of ${bytes} bytes; at most ${MAX_CURSOR_BYTES} are accepted`,
    where: about,
    next: 'Run again to resume before that page. If the error persists, report it to the service with the name of the query.',
  })
}

function nothingButEmptyPages(about: string): ExportError {
  return new ExportError({
    kind: 'data',
    what: `The service sent ${MAX_EMPTY_PAGES} pages in a row that are empty or hold only repeated rows`,
    where: about,
    next: 'Run again to resume from there.',
  })
}
