import { ExportError, isExportError } from '../core/index.ts'
import {
  type DecodedPage,
  type DecodePage,
  MAX_CURSOR_BYTES,
  type PageIds,
  type SeenCursors,
  withPage,
} from '../rows/index.ts'
import type { Chain } from './chain.ts'
import { MIN_PAGE_SIZE } from './pace/page-sizes.ts'
import { pageRequests } from './page-requests.ts'
import { NotServed } from './sending/failures.ts'
import type { ResponseOutcome } from './sending/outgoing.ts'
import type { RequestGroup, Service, ServiceRequest } from './service.ts'

export type ExtractedPage = {
  readonly page: DecodedPage
  /** Requests sent for this page, retries included. */
  readonly requests: number
  /** Rows that were requested, with the attempt that came. */
  readonly size: number
  readonly ms: number
}

// An empty page does not end a chain, nor one of repeated rows; but endless ones would cost searches.
const MAX_EMPTY_PAGES = 100

/**
 * Follows cursors to the page without `next`, or until `Chain.isOver`: short and empty pages do not end a chain.
 * @throws ExportError `data` for a repeated or too long cursor, or pages without new rows; else as `Service.request`
 */
export async function* extractPages(
  service: Service,
  chain: Chain,
  decode: DecodePage,
): AsyncGenerator<ExtractedPage, void, undefined> {
  const { cursor, cursorSize, pageSize, seen, sizes } = chain
  const group = service.group()
  const parts = { service, chain, decode, group, requestFor: pageRequests(service, chain) }
  if (cursor !== null) seen.add(cursor)
  const isBound = cursor !== null && sizes?.bindsSizes === true
  const size = isBound ? (cursorSize ?? pageSize) : pageSize
  let { recent } = chain
  let following: PageRequest | null = null
  try {
    let number = chain.page
    let current = new PageRequest(parts, { cursor, ownSize: cursorSize, size }, number, recent)
    let emptyPages = 0
    for (let wasted = chain.requestsBefore; ; wasted = 0) {
      const page = await current.response
      const { next } = page
      const fault = next === null ? null : cursorFault(next, seen, current.about)
      if (fault !== null) throw fault
      if (next !== null) seen.add(next)
      recent = withPage(recent, page.ids)
      const { requests, size, ms } = current
      number++
      const request = (cursor: string): PageRequest =>
        new PageRequest(parts, { cursor, ownSize: size, size }, number, recent)
      const newItems = page.items - page.repeated
      if (next !== null && newItems > 0 && chain.mayPrefetch()) following = request(next)
      yield { page, requests: requests + wasted, size, ms }
      if (next === null || chain.isOver()) return
      emptyPages = newItems === 0 ? emptyPages + 1 : 0
      if (emptyPages >= MAX_EMPTY_PAGES) throw nothingButEmptyPages(current.about)
      current = following ?? request(next)
      following = null
    }
  } finally {
    group.end()
    following?.response.catch(() => {})
  }
}

const REPORT = 'If the error persists, report it to the service with the name of the query.'

function cursorFault(cursor: string, seen: SeenCursors, where: string): ExportError | null {
  const bytes = Buffer.byteLength(cursor)
  if (bytes > MAX_CURSOR_BYTES) {
    const what = `The service sent a cursor of ${bytes} bytes; at most ${MAX_CURSOR_BYTES} are accepted`
    const next = `Run again to resume before that page. ${REPORT}`
    return new ExportError({ kind: 'data', what, where, next })
  }
  if (!seen.has(cursor)) return null
  const what = 'The service repeated a cursor of this chain, which would never end'
  return new ExportError({ kind: 'data', what, where, next: `Run again. ${REPORT}` })
}

function nothingButEmptyPages(where: string): ExportError {
  const what = `The service sent ${MAX_EMPTY_PAGES} pages in a row that are empty or hold only repeated rows`
  return new ExportError({ kind: 'data', what, where, next: 'Run again to resume from there.' })
}

/** A cursor, the size of the page that it came with, and in which one its page is requested first. */
type Cursor = { readonly cursor: string | null; readonly ownSize: number | null; readonly size: number }

type PageParts = {
  readonly service: Service
  readonly chain: Chain
  readonly decode: DecodePage
  readonly group: RequestGroup
  readonly requestFor: ReturnType<typeof pageRequests>
}

/** The request of a page, with its retries. It is sent when it is made. */
class PageRequest {
  readonly about: string
  /** A failure reaches whoever awaits the page; one that nobody wants has none. */
  readonly response: Promise<DecodedPage>
  /** Rows requested with the last attempt. */
  size: number
  /** Requests sent for it so far. */
  requests = 0
  ms = 0

  readonly #parts: PageParts
  readonly #from: Cursor
  readonly #page: number
  readonly #recent: readonly PageIds[]

  constructor(parts: PageParts, from: Cursor, page: number, recent: readonly PageIds[]) {
    this.#parts = parts
    this.#from = from
    this.#page = page
    this.#recent = recent
    this.size = from.size
    this.about = `${parts.chain.partition()}, page ${page + 1}`
    this.response = this.#request()
    this.response.catch(() => {})
  }

  /** A cursor goes with the wanted size, then with its own: if only that is accepted, the service binds the two. */
  async #request(): Promise<DecodedPage> {
    const { sizes } = this.#parts.chain
    const own = this.#from.ownSize
    for (let asked = this.size, isRefused = false; ; asked = own!, isRefused = true) {
      try {
        const page = await this.#ask(asked)
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

  #ask(size: number): Promise<DecodedPage> {
    const { service, chain, group } = this.#parts
    return service.request(
      { ...this.#sized(size), group },
      (body, _where, outcome) => this.#read(body, outcome),
      () => {
        this.requests++
        chain.onRequest()
      },
    )
  }

  #sized(size: number): ServiceRequest {
    this.size = size
    const { requestFor } = this.#parts
    return { ...requestFor(this.#from.cursor, this.about, size), smaller: this.#smallerThan(size) }
  }

  #smallerThan(size: number): (() => ServiceRequest | null) | undefined {
    const { sizes, isTrial, mayRestart, page: first } = this.#parts.chain
    const isBound = (): boolean => this.#from.cursor !== null && sizes?.bindsSizes === true
    const isFixed = size <= MIN_PAGE_SIZE || (isTrial && this.#page === first) || (isBound() && !mayRestart)
    if (sizes === null || isFixed) return undefined
    return () => (isBound() ? null : this.#sized(sizes.after(size)))
  }

  async #read(body: Uint8Array, outcome: ResponseOutcome): Promise<DecodedPage> {
    const { chain, decode } = this.#parts
    this.ms = outcome.ms
    const { query, requested, queryValue, since, known, feed } = chain
    const [partition, own, page, recent] = [chain.partition(), chain.own(), this.#page, this.#recent]
    const context = { query, partition, page, requested, own, queryValue, since, recent, known, feed }
    const decoded = await decode(body, context)
    outcome.hasRows(decoded.items)
    return decoded
  }
}
