import {
  type DecodedPage,
  type DecodePage,
  ExportError,
  MAX_CURSOR_BYTES,
  type NamedQuery,
  type PageContext,
  type PageIds,
  type SeenCursors,
  type Window,
  withPage,
} from '../core/index.ts'
import { type ChainRequest, pageRequests } from './page-requests.ts'
import type { ResponseOutcome, Service } from './service.ts'
import { interrupted } from './transport/http-client.ts'

// Cursors have some hundred characters at most, so a longer tail is not searched.
const TAIL_BYTES = 8192

/** `next` as the last member of the outermost object, a plain ASCII string without escapes. */
const LAST_MEMBER = /"next"\s*:\s*"([ !#-[\]-~]+)"\s*\}\s*$/

/** A chain, from its beginning or from the resume position of a checkpoint. */
export type Chain = ChainRequest & {
  readonly query: NamedQuery
  /** The part of the requested range whose rows the chain keeps, the end excluded. It may shrink during the chain. */
  readonly own: () => Window | null
  /** The key of its current partition, for messages. */
  readonly partition: () => string
  /** Whether the chain has all of its rows although more pages follow. Called after each commit. */
  readonly isOver: () => boolean
  /** How the size of pages changes; null: it does not. */
  readonly sizing: Sizing | null
  /** The cursor to resume with; null: from the beginning. */
  readonly cursor: string | null
  /** Pages received before. */
  readonly page: number
  /** Requests of this run that no committed page counts yet, from before a restart or a change of the page size. */
  readonly requestsBefore: number
  /** The `query_value` column. */
  readonly queryValue: string
  /** The ids of the last pages before. */
  readonly recent: readonly PageIds[]
  /** Every cursor of this chain. Each is added before its page is yielded. */
  readonly seen: SeenCursors
  /** Called each time a request of this chain is sent. */
  readonly onRequest: () => void
  /** The slots for requesting a page before its predecessor is committed. */
  readonly prefetch: Prefetch
}

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

/** How a chain chooses the size of its pages: see `ChainSize`. */
export type Sizing = {
  /** Whether smaller pages can be requested if the service can't serve pages of this size. */
  readonly canShrink: boolean
  /** Whether the page in flight may be the last of this size. */
  readonly mayGrowNext: boolean
  /** @returns whether to request more rows for the pages that follow */
  served(page: { readonly ms: number; readonly isNew: boolean }): boolean
}

/**
 * Prefetch slots: the right to request a page before its predecessor is committed. A crash loses every response that
 * is charged and not committed, so all chains share a fixed number of slots.
 */
export type Prefetch = {
  /** Takes a slot. @returns false: none is free */
  take(): boolean
  give(): void
}

/** @param free returns the number of slots that exist at the moment */
export function prefetchSlots(free: () => number): Prefetch {
  let taken = 0
  return {
    take() {
      if (taken >= free()) return false
      taken++
      return true
    },
    give() {
      taken--
    },
  }
}

// An empty page does not end a chain, nor does a page of repeated rows. But a service that sends nothing else would
// cost searches without end.
const MAX_EMPTY_PAGES = 100

/** A page that has been requested. */
type PageInFlight = {
  readonly cursor: string | null
  readonly about: string
  readonly response: Promise<DecodedPage>
  /** The ids of the chain's last pages, once this page is decoded. */
  readonly known: Promise<readonly PageIds[]>
  /** Requests sent for it so far. */
  requests: number
  /** How long its response took. */
  ms: number
  /** The cursor of the next page, as soon as it is known. */
  next: string | null
  /** Called when `next` is known. */
  onNext: () => void
  /** Whether the consumer has its page. */
  isHandedOut: boolean
  /** Aborts the request in flight and sends no more for this page. */
  abort(): void
}

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
  const requestFor = pageRequests(service, chain)
  if (chain.cursor !== null) chain.seen.add(chain.cursor)

  const requestPage = (
    cursor: string | null,
    page: number,
    known: Promise<readonly PageIds[]> | readonly PageIds[],
  ): PageInFlight => {
    const about = `${chain.partition()}, page ${page + 1}`
    const { query, requested: range, queryValue, since } = chain
    const controller = new AbortController()
    const read = async (body: Uint8Array, _where: string, outcome: ResponseOutcome): Promise<DecodedPage> => {
      inFlight.ms = outcome.ms
      inFlight.next = nextAtEnd(body)
      inFlight.onNext()
      // Rows of the previous page are dropped when they repeat, so that page has to be decoded first.
      const recent = await before(known, about)
      const partition = chain.partition()
      const own = chain.own()
      const context: PageContext = {
        query,
        partition,
        page,
        requested: range,
        own,
        queryValue,
        since,
        recent,
      }
      const decoded = await decode(body, context)
      outcome.hasRows(decoded.items)
      return decoded
    }
    const onSent = (): void => {
      inFlight.requests++
      chain.onRequest()
    }
    const response = service.request({ ...requestFor(cursor, about), abort: controller.signal }, read, onSent)
    const knownAfter = response.then(async ({ ids }) => withPage(await known, ids))
    knownAfter.catch(() => {})
    let isSettled = false
    const settle = (): void => {
      isSettled = true
    }
    // A failure reaches the consumer of the page; an aborted page has no consumer.
    response.then(settle, settle)
    const inFlight: PageInFlight = {
      cursor,
      about,
      response,
      known: knownAfter,
      requests: 0,
      ms: 0,
      next: null,
      onNext: () => {},
      isHandedOut: false,
      abort() {
        if (!isSettled) controller.abort()
        if (!inFlight.isHandedOut) response.then(release, () => {})
      },
    }
    return inFlight
  }

  let page = chain.page
  let current = requestPage(chain.cursor, page, chain.recent)
  let following: PageInFlight | null = null
  let emptyPages = 0
  const prefetchNext = (): void => {
    const { next } = current
    if (following !== null || next === null || chain.seen.has(next)) return
    // After an empty page, the next may exceed the limit of empty pages.
    if (emptyPages > 0 || chain.sizing?.mayGrowNext === true || !chain.prefetch.take()) return
    following = requestPage(next, page + 1, current.known)
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
      current.onNext = prefetchNext
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
      if (following === null) current = requestPage(next, page + 1, current.known)
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

/** @throws ExportError `interrupted` when the previous page failed: its own error is thrown where it is awaited */
async function before(
  known: Promise<readonly PageIds[]> | readonly PageIds[],
  about: string,
): Promise<readonly PageIds[]> {
  try {
    return await known
  } catch {
    throw interrupted(about)
  }
}

function repeatedCursor(about: string): ExportError {
  return new ExportError(
    'data',
    'The service repeated a cursor of this chain, which would never end',
    about,
    'Run again. If the error persists, report it to the service with the name of the query.',
  )
}

function longCursor(bytes: number, about: string): ExportError {
  return new ExportError(
    'data',
    `The service sent a cursor of ${bytes} bytes; at most ${MAX_CURSOR_BYTES} are accepted`,
    about,
    'Run again to resume before that page. If the error persists, report it to the service with the name of the query.',
  )
}

function nothingButEmptyPages(about: string): ExportError {
  return new ExportError(
    'data',
    `The service sent ${MAX_EMPTY_PAGES} pages in a row that are empty or hold only repeated rows`,
    about,
    'Run again to resume from there.',
  )
}

/**
 * The cursor at the end of a response, read from its last bytes before the response is decoded. In valid JSON the last
 * brace closes the outermost object, so a key and a string right before it are its last member, which counts if a key
 * is repeated. So the string is the cursor, or the response is no JSON.
 * @returns null when the response ends in another way: it may still have a cursor
 */
export function nextAtEnd(body: Uint8Array): string | null {
  const tail = Buffer.from(body.buffer, body.byteOffset, body.byteLength).subarray(-TAIL_BYTES)
  return LAST_MEMBER.exec(tail.toString('latin1'))?.[1] ?? null
}
