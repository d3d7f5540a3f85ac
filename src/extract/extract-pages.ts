import { ExportError, isExportError } from '../core/index.ts'
import { interrupted } from '../http/index.ts'
import { type DecodedPage, type DecodePage, MAX_CURSOR_BYTES, type PageIds, withPage } from '../rows/index.ts'
import type { Chain } from './chain.ts'
import { NotServed } from './failures.ts'
import type { ResponseOutcome } from './outgoing.ts'
import { MIN_PAGE_SIZE } from './pace/page-sizes.ts'
import { pageRequests } from './page-requests.ts'
import type { Flight, Service, ServiceRequest } from './service.ts'

export type ExtractedPage = {
  readonly page: DecodedPage
  /** Requests sent for this page, retries included. */
  readonly requests: number
  /** Rows that were requested, with the attempt that came. */
  readonly size: number
  /** How long the response took. */
  readonly ms: number
}

// An empty page does not end a chain, nor does a page of repeated rows. But a service that sends nothing else would
// cost searches without end.
const MAX_EMPTY_PAGES = 100

/**
 * Follows a chain of cursors to its end. Only a missing `next` ends it: short and empty pages do not. If
 * `chain.mayPrefetch` permits it, the next page is requested as soon as its cursor arrives; otherwise when the consumer
 * requests it. At most one page is prefetched. A chain may be over before its last page: see `Chain.isOver`.
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
  const onNext = (page: PageInFlight): void => {
    if (page === current) prefetchNext()
  }
  const parts = { service, chain, decode, release, onNext, requestFor: pageRequests(service, chain) }
  let flight = service.flight()
  const request = (from: Cursor, page: number, recent: RecentIds): PageInFlight =>
    new PageInFlight(parts, flight, from, page, recent)
  if (chain.cursor !== null) chain.seen.add(chain.cursor)
  let page = chain.page
  const { cursor, cursorSize, pageSize, sizes } = chain
  const isBound = cursor !== null && sizes?.bindsSizes === true
  const size = isBound ? (cursorSize ?? pageSize) : pageSize
  let current = request({ cursor, ownSize: cursorSize, size }, page, chain.recent)
  let following: PageInFlight | null = null
  let emptyPages = 0
  const prefetchNext = (): void => {
    const { next } = current
    if (following !== null || next === null || chain.seen.has(next)) return
    // After an empty page, the next may exceed the limit of empty pages.
    if (emptyPages > 0 || !chain.mayPrefetch()) return
    following = request(current.after(next), page + 1, current.recent)
  }
  /** @returns the requests that were sent for it */
  const dropFollowing = (): number => {
    if (following === null) return 0
    const { requests } = following
    // The current page has its response.
    flight.end()
    flight = service.flight()
    following.drop()
    following = null
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
      yield { page: decoded, requests: current.requests + wasted, size: current.size, ms }
      if (next === null || chain.isOver()) return
      wasted = 0
      emptyPages = decoded.items === decoded.repeated ? emptyPages + 1 : 0
      if (emptyPages >= MAX_EMPTY_PAGES) throw nothingButEmptyPages(current.about)
      current = following ?? request(current.after(next), page + 1, current.recent)
      following = null
    }
  } finally {
    flight.end()
    current.drop()
    dropFollowing()
  }
}

const REPORT = 'If the error persists, report it to the service with the name of the query.'

function repeatedCursor(where: string): ExportError {
  const what = 'The service repeated a cursor of this chain, which would never end'
  return new ExportError({ kind: 'data', what, where, next: `Run again. ${REPORT}` })
}

function longCursor(bytes: number, where: string): ExportError {
  const what = `The service sent a cursor of ${bytes} bytes; at most ${MAX_CURSOR_BYTES} are accepted`
  return new ExportError({
    kind: 'data',
    what,
    where,
    next: `Run again to resume before that page. ${REPORT}`,
  })
}

function nothingButEmptyPages(where: string): ExportError {
  const what = `The service sent ${MAX_EMPTY_PAGES} pages in a row that are empty or hold only repeated rows`
  return new ExportError({ kind: 'data', what, where, next: 'Run again to resume from there.' })
}

/** A cursor, the size of the page that it came with, and in which one its page is requested first. */
type Cursor = { readonly cursor: string | null; readonly ownSize: number | null; readonly size: number }

/** The ids of the last pages of a chain. */
type RecentIds = Promise<readonly PageIds[]> | readonly PageIds[]

type PageParts = {
  readonly service: Service
  readonly chain: Chain
  readonly decode: DecodePage
  readonly release: (page: DecodedPage) => void
  readonly onNext: (page: PageInFlight) => void
  readonly requestFor: ReturnType<typeof pageRequests>
}

/** A page that has been requested. Its request is sent when it is made. */
class PageInFlight {
  readonly cursor: string | null
  readonly about: string
  /** A failure reaches the consumer of the page; a dropped page has none. */
  readonly response: Promise<DecodedPage>
  /** The ids of the chain's last pages, once this page is decoded. */
  readonly recent: Promise<readonly PageIds[]>
  /** Rows requested with the last attempt. */
  size: number
  /** Requests sent for it so far. */
  requests = 0
  /** How long its response took. */
  ms = 0
  /** The cursor of the next page, as soon as it is known. */
  next: string | null = null
  /** Whether the consumer has its page. */
  isHandedOut = false

  readonly #parts: PageParts
  readonly #page: number
  readonly #ownSize: number | null
  readonly #flight: Flight

  /** @param recent the ids of the pages before it */
  constructor(parts: PageParts, flight: Flight, from: Cursor, page: number, recent: RecentIds) {
    this.#parts = parts
    this.#page = page
    this.#flight = flight
    this.cursor = from.cursor
    this.size = from.size
    this.#ownSize = from.ownSize
    this.about = `${parts.chain.partition()}, page ${page + 1}`
    this.response = this.#request(recent)
    this.recent = this.response.then(async ({ ids }) => withPage(await recent, ids))
    this.recent.catch(() => {})
  }

  /** The page after this one has its size. */
  after(cursor: string): Cursor {
    return { cursor, ownSize: this.size, size: this.size }
  }

  /** The consumer does not get its page. */
  drop(): void {
    if (!this.isHandedOut) this.response.then(this.#parts.release, () => {})
  }

  /**
   * A size is the service's to judge: a cursor is sent with the one that is wanted. Where that is refused, it is sent with
   * the size of the page that it came with. If this is not refused, the service binds sizes to cursors.
   */
  async #request(recent: RecentIds): Promise<DecodedPage> {
    const { sizes } = this.#parts.chain
    const own = this.#ownSize
    for (let asked = this.size, isRefused = false; ; asked = own!, isRefused = true) {
      try {
        const page = await this.#ask(asked, recent)
        if (isRefused) sizes?.bind()
        sizes?.served(this.size, asked)
        return page
      } catch (error) {
        const isOfSize = isExportError(error, 'cursor') && sizes !== null && own !== null && this.size !== own
        if (!isOfSize) throw error
        if (asked !== own) continue
        // With its own size the page did not come before.
        sizes.bind()
        throw new NotServed({ ...error, kind: 'transient', cause: error })
      }
    }
  }

  #ask(size: number, recent: RecentIds): Promise<DecodedPage> {
    const { service, chain } = this.#parts
    return service.request(
      { ...this.#sized(size), flight: this.#flight },
      (body, _where, outcome) => this.#read(body, recent, outcome),
      () => {
        this.requests++
        chain.onRequest()
      },
    )
  }

  #sized(size: number): ServiceRequest {
    this.size = size
    const { requestFor } = this.#parts
    return { ...requestFor(this.cursor, this.about, size), smaller: this.#smallerThan(size) }
  }

  #smallerThan(size: number): (() => ServiceRequest | null) | undefined {
    const { sizes, isTrial, mayRestart, page: first } = this.#parts.chain
    const isBound = (): boolean => this.cursor !== null && sizes?.bindsSizes === true
    const isFixed = size <= MIN_PAGE_SIZE || (isTrial && this.#page === first) || (isBound() && !mayRestart)
    if (sizes === null || isFixed) return undefined
    return () => (isBound() ? null : this.#sized(sizes.after(size)))
  }

  async #read(body: Uint8Array, before: RecentIds, outcome: ResponseOutcome): Promise<DecodedPage> {
    const { chain, decode, onNext } = this.#parts
    this.ms = outcome.ms
    this.next = nextAtEnd(body)
    onNext(this)
    // Rows of the previous page are dropped when they repeat, so that page has to be decoded first.
    const recent = await idsOf(before, this.about)
    const { query, requested, queryValue, since, known, feed } = chain
    const [partition, own, page] = [chain.partition(), chain.own(), this.#page]
    const context = { query, partition, page, requested, own, queryValue, since, recent, known, feed }
    const decoded = await decode(body, context)
    outcome.hasRows(decoded.items)
    return decoded
  }
}

/** @throws ExportError `interrupted` when the previous page failed: its own error is thrown where it is awaited */
async function idsOf(recent: RecentIds, about: string): Promise<readonly PageIds[]> {
  try {
    return await recent
  } catch {
    throw interrupted(about)
  }
}

// Cursors have some hundred characters at most, so a longer tail is not searched.
const TAIL_BYTES = 8192

/** `next` as the last member of the outermost object, a plain ASCII string without escapes. */
const LAST_MEMBER = /"next"\s*:\s*"([ !#-[\]-~]+)"\s*\}\s*$/

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
