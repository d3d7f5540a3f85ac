import { ExportError, isExportError } from '../core/index.ts'
import { type DecodedPage, MAX_CURSOR_BYTES, type SeenCursors } from '../rows/index.ts'
import { MIN_PAGE_SIZE, type PageSizes } from './pace/page-sizes.ts'
import { type ChainRequest, requestsFor } from './page-requests.ts'
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

/** How the pages of a chain are requested. */
export type PageRequests = {
  readonly service: Service
  readonly chain: ChainRequest
  /** Names a page by its index, for messages. */
  readonly about: (page: number) => string
  /** How pages that do not come are requested in other sizes; null: they are not. */
  readonly sizes: PageSizes | null
  /** Whether a page that no size of its cursor serves may be requested without it. */
  readonly mayRestart: boolean
  /** A crash loses each response that is charged and not committed: never more than a run may have in flight. */
  readonly mayPrefetch: () => boolean
  readonly onRequest: () => void
}

/** A resume position. */
export type PageStart = {
  /** null: from the beginning. */
  readonly cursor: string | null
  /** Rows of the page that the cursor came with; null: there is no cursor. */
  readonly cursorSize: number | null
  readonly size: number
  /** Whether the first page is asked for in one size alone. */
  readonly isTrial: boolean
  /** Pages received before. */
  readonly page: number
  /** Every cursor of this chain. Each is added before its page is yielded. */
  readonly seen: SeenCursors
}

/** Decodes a page, given with its index. A page is read before the one after it is requested. */
export type ReadPage = (body: Uint8Array, page: number) => Promise<DecodedPage>

/**
 * Follows cursors to the page without `next`: short and empty pages do not end a chain.
 * @throws ExportError `data` for a repeated or too long cursor, or pages without new rows; else as `Service.request`
 */
export async function* extractPages(
  requests: PageRequests,
  start: PageStart,
  read: ReadPage,
): AsyncGenerator<ExtractedPage, void, undefined> {
  const { service, chain, sizes, mayPrefetch } = requests
  const { cursor, cursorSize, seen } = start
  const group = service.group()
  const parts = { ...requests, start, read, group, requestFor: requestsFor(service.endpoints, chain) }
  if (cursor !== null) seen.add(cursor)
  const isBound = cursor !== null && sizes?.bindsSizes === true
  const size = isBound ? (cursorSize ?? start.size) : start.size
  let current = new PageRequest(parts, { cursor, ownSize: cursorSize, size }, start.page)
  let following: PageRequest | null = null
  let emptyPages = 0
  try {
    for (;;) {
      const page = await current.response
      const { number, about, requests, size, ms } = current
      const { next } = page
      if (next !== null) {
        requireNew(next, seen, about)
        seen.add(next)
      }
      const request = (cursor: string): PageRequest =>
        new PageRequest(parts, { cursor, ownSize: size, size }, number + 1)
      const newItems = page.items - page.repeated
      if (next !== null && newItems > 0 && mayPrefetch()) following = request(next)
      yield { page, requests, size, ms }
      if (next === null) return
      emptyPages = newItems === 0 ? emptyPages + 1 : 0
      if (emptyPages >= MAX_EMPTY_PAGES) throw nothingButEmptyPages(about)
      current = following ?? request(next)
      following = null
    }
  } finally {
    group.end()
    following?.response.catch(() => {})
  }
}

const REPORT = 'If the error persists, report it to the service with the name of the query.'

function requireNew(cursor: string, seen: SeenCursors, where: string): void {
  const bytes = Buffer.byteLength(cursor)
  if (bytes > MAX_CURSOR_BYTES) {
    const what = `The service sent a cursor of ${bytes} bytes; at most ${MAX_CURSOR_BYTES} are accepted`
    const next = `Run again to resume before that page. ${REPORT}`
    throw new ExportError({ kind: 'data', what, where, next })
  }
  if (!seen.has(cursor)) return
  const what = 'The service repeated a cursor of this chain, which would never end'
  throw new ExportError({ kind: 'data', what, where, next: `Run again. ${REPORT}` })
}

function nothingButEmptyPages(where: string): ExportError {
  const what = `The service sent ${MAX_EMPTY_PAGES} pages in a row that are empty or hold only repeated rows`
  return new ExportError({ kind: 'data', what, where, next: 'Run again to resume from there.' })
}

/** A cursor, the size of the page that it came with, and in which one its page is requested first. */
type Cursor = { readonly cursor: string | null; readonly ownSize: number | null; readonly size: number }

type PageParts = PageRequests & {
  readonly start: PageStart
  readonly read: ReadPage
  readonly group: RequestGroup
  readonly requestFor: ReturnType<typeof requestsFor>
}

/** The request of a page, with its retries. It is sent when it is made. */
class PageRequest {
  readonly number: number
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

  constructor(parts: PageParts, from: Cursor, number: number) {
    this.#parts = parts
    this.#from = from
    this.number = number
    this.size = from.size
    this.about = parts.about(number)
    this.response = this.#request()
    this.response.catch(() => {})
  }

  /** A cursor goes with the wanted size, then with its own: if only that is accepted, the service binds the two. */
  async #request(): Promise<DecodedPage> {
    const { sizes } = this.#parts
    const { size: wanted, ownSize: own } = this.#from
    if (sizes === null || own === null) return this.#ask(wanted)
    let refusal: ExportError | null = null
    for (const asked of new Set([wanted, own])) {
      const outcome = await this.#ask(asked).catch(refusedCursor)
      if (!(outcome instanceof ExportError)) {
        if (refusal !== null) sizes.bind()
        return outcome
      }
      // It came with this very size.
      if (this.size === own) throw outcome
      refusal = outcome
    }
    // With its own size the page did not come before.
    sizes.bind()
    throw new NotServed({ ...refusal!, kind: 'transient', cause: refusal })
  }

  async #ask(asked: number): Promise<DecodedPage> {
    const { service, group, sizes, onRequest } = this.#parts
    const page = await service.request(
      { ...this.#sized(asked), group },
      (body, _where, outcome) => this.#read(body, outcome),
      () => {
        this.requests++
        onRequest()
      },
    )
    sizes?.served(this.size, asked)
    return page
  }

  #sized(size: number): ServiceRequest {
    this.size = size
    const { requestFor } = this.#parts
    return { ...requestFor(this.#from.cursor, this.about, size), smaller: this.#smallerThan(size) }
  }

  #smallerThan(size: number): (() => ServiceRequest | null) | undefined {
    const { sizes, mayRestart, start } = this.#parts
    const isBound = (): boolean => this.#from.cursor !== null && sizes?.bindsSizes === true
    const isTrial = start.isTrial && this.number === start.page
    if (sizes === null || size <= MIN_PAGE_SIZE || isTrial || (isBound() && !mayRestart)) return undefined
    return () => (isBound() ? null : this.#sized(sizes.after(size)))
  }

  async #read(body: Uint8Array, outcome: ResponseOutcome): Promise<DecodedPage> {
    this.ms = outcome.ms
    const decoded = await this.#parts.read(body, this.number)
    outcome.hasRows(decoded.items)
    return decoded
  }
}

function refusedCursor(error: unknown): ExportError {
  if (isExportError(error, 'cursor')) return error
  throw error
}
