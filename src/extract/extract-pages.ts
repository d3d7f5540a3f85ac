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
import type { ResponseFacts, Service } from './service.ts'
import { interrupted } from './transport/http-client.ts'

// Cursors are some hundred characters at most; a longer tail is not worth looking through.
const TAIL_BYTES = 8192

/** `next` as the last member of the outermost object, a plain ASCII string without escapes. */
const LAST_MEMBER = /"next"\s*:\s*"([ !#-[\]-~]+)"\s*\}\s*$/

/** One chain of cursors, from its beginning or from where a checkpoint left it. */
export type Chain = ChainRequest & {
  readonly query: NamedQuery
  /** What of the requested range is its own, the end excluded; may become less while it goes on. */
  readonly own: () => Window | null
  /** The key of its current partition, for messages. */
  readonly partition: () => string
  /** Whether it has all of its rows, though there are more pages; called after each commit. */
  readonly isOver: () => boolean
  /** What is to become of that; null: it stays as it is. */
  readonly sizing: Sizing | null
  /** Where to go on; null: from the beginning. */
  readonly cursor: string | null
  /** Pages received before. */
  readonly page: number
  /** Requests that were sent for the first page before, in vain. */
  readonly requestsBefore: number
  /** The `query_value` column. */
  readonly queryValue: string
  /** The ids of the last pages before. */
  readonly recent: readonly PageIds[]
  /** Every cursor met in this chain; grows before the page that brings one is yielded. */
  readonly seen: SeenCursors
  /** Called each time a request of this chain is sent. */
  readonly onRequest: () => void
  /** Whether a page may be requested before the one before it is committed. */
  readonly prefetch: Prefetch
}

export type ExtractedPage = {
  readonly page: DecodedPage
  /** Sent for this page, retries included. */
  readonly requests: number
  /** Rows that were requested. */
  readonly size: number
  /** How long the response took. */
  readonly ms: number
  /** Whether the pages that follow may be larger: the chain can leave its cursors, as no other page is on its way. */
  readonly mayGrow: boolean
}

/** How a chain finds the size of its pages: see `ChainSize`. */
export type Sizing = {
  /** Whether fewer rows can be requested, if the service can't serve so many. */
  readonly canShrink: boolean
  /** Whether the page on its way may be the last of this size. */
  readonly mayGrowNext: boolean
  /** @returns whether to request more rows for the pages that follow */
  served(page: { readonly ms: number; readonly isNew: boolean }): boolean
}

/**
 * Prefetch slots: the right to request a page before the one before it is committed. A crash costs every response
 * that is paid for and not committed, so all chains share a fixed number of slots.
 */
export type Prefetch = {
  /** Takes a slot. @returns false: none is free */
  take(): boolean
  give(): void
}

/** @param free returns how many slots there are at the moment */
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

// An empty page does not end a chain, nor does one of repeated rows. But a service that sends nothing else would cost
// searches for ever.
const MAX_EMPTY_PAGES = 100

/** A page that has been requested. */
type PageInFlight = {
  readonly cursor: string | null
  readonly about: string
  readonly response: Promise<DecodedPage>
  /** What is known of the chain's rows once this page is decoded. */
  readonly known: Promise<readonly PageIds[]>
  /** Requests sent for it so far. */
  requests: number
  /** How long its response took. */
  ms: number
  /** The cursor of the page after it, as soon as it can be read off. */
  next: string | null
  /** Called when `next` has become known. */
  onNext: () => void
  /** Whether the consumer has its page. */
  isHandedOut: boolean
  /** Aborts it: nothing more is sent for it, and the request in flight is aborted. */
  abort(): void
}

/**
 * Follows a chain of cursors to its end. `next` alone decides: short and empty pages go on. Where `chain.prefetch` has
 * a slot, the next page is requested as soon as the cursor to it has arrived; otherwise when the consumer comes
 * back. A chain is never more than one page ahead of its consumer. It may be over before its last page: see
 * `Chain.isOver`. The consumer may leave it after a page with `mayGrow`, to go on with larger pages.
 * @param release called with pages that were decoded and that the consumer does not get
 * @throws ExportError `data` when a cursor comes twice or is too long, or nothing but pages without news come; else as
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
    const read = async (body: Uint8Array, _where: string, facts: ResponseFacts): Promise<DecodedPage> => {
      inFlight.ms = facts.ms
      inFlight.next = nextAtEnd(body)
      inFlight.onNext()
      // Rows that the page before brought are not taken again, so it has to be decoded first.
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
      facts.hasRows(decoded.items)
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
    // After an empty page the next may be one too many.
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
      // The first response may have been broken, and a retry may have brought another one.
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

/** @throws ExportError `interrupted` when the page before never came: its own error is thrown where it is waited for */
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
    'The service sent a cursor that this chain has had before, so it would never end',
    about,
    'Run again; if it stays so, report it to the service with the name of the query.',
  )
}

function longCursor(bytes: number, about: string): ExportError {
  return new ExportError(
    'data',
    `The service sent a cursor of ${bytes} bytes; up to ${MAX_CURSOR_BYTES} are taken`,
    about,
    'Run again to go on before that page; if it stays so, report it to the service with the name of the query.',
  )
}

function nothingButEmptyPages(about: string): ExportError {
  return new ExportError(
    'data',
    `The service sent ${MAX_EMPTY_PAGES} empty pages in a row, or pages without anything new, and still more to come`,
    about,
    'Run again to go on from there.',
  )
}

/**
 * The cursor that a response ends with, read off its last bytes long before the whole is decoded. In valid JSON the
 * last brace closes the outermost object, and a key and a string right before it can be nothing but its last member,
 * which is the one that counts if the key comes twice. So it is the cursor, or the response is no JSON at all.
 * @returns null when it does not end so: it may still have a cursor
 */
export function nextAtEnd(body: Uint8Array): string | null {
  const tail = Buffer.from(body.buffer, body.byteOffset, body.byteLength).subarray(-TAIL_BYTES)
  return LAST_MEMBER.exec(tail.toString('latin1'))?.[1] ?? null
}
