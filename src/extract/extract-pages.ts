import { ExportError, isExportError, LEFT_OUT, repeatsSecret } from '../core/index.ts'
import { type DecodedPage, MAX_CURSOR_BYTES, type SeenCursors } from '../rows/index.ts'
import { MIN_PAGE_SIZE, type PageSizes } from './pace/page-sizes.ts'
import { type ChainRequest, requestsFor } from './page-requests.ts'
import { NotServed } from './sending/failures.ts'
import type { ReadResponse, ServiceRequest } from './sending/outgoing.ts'
import type { RequestGroup, Service } from './service.ts'

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
 * @throws ExportError `data` for a cursor that cannot be stored, or pages without new rows; else as `Service.request`
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
  let number = start.page
  let current = requestPage(parts, { cursor, ownSize: cursorSize, size }, number)
  let following: typeof current | null = null
  let emptyPages = 0
  try {
    for (;;) {
      const extracted = await current
      const { size, page } = extracted
      const { next } = page
      const where = requests.about(number++)
      if (next !== null) requireNew(next, seen, where)
      const request = (cursor: string) => requestPage(parts, { cursor, ownSize: size, size }, number)
      const newItems = page.items - page.repeated
      if (next !== null && newItems > 0 && mayPrefetch()) following = request(next)
      yield extracted
      if (next === null) return
      emptyPages = newItems === 0 ? emptyPages + 1 : 0
      if (emptyPages >= MAX_EMPTY_PAGES) throw nothingButEmptyPages(where)
      current = following ?? request(next)
      following = null
    }
  } finally {
    group.end()
  }
}

const REPORT = 'If the error persists, report it to the service with the name of the query.'

/** Adds a cursor to those of its chain. @throws ExportError `data` when it is known, too long, or repeats a secret */
function requireNew(cursor: string, seen: SeenCursors, where: string): void {
  const bytes = Buffer.byteLength(cursor)
  if (bytes > MAX_CURSOR_BYTES) {
    const what = `The service sent a cursor of ${bytes} bytes; at most ${MAX_CURSOR_BYTES} are accepted`
    const next = `Run again to resume before that page. ${REPORT}`
    throw new ExportError({ kind: 'data', what, where, next })
  }
  if (repeatsSecret(cursor, 'long')) {
    const what = `The cursor that the service sent cannot be stored: ${LEFT_OUT}`
    const next = 'Choose windows so short that each fits on one page, and report it to the service.'
    throw new ExportError({ kind: 'data', what, where, next })
  }
  if (seen.has(cursor)) {
    const what = 'The service repeated a cursor of this chain, which would never end'
    throw new ExportError({ kind: 'data', what, where, next: `Run again. ${REPORT}` })
  }
  seen.add(cursor)
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

/** Requests a page, with its retries. A failure reaches whoever awaits it; of a page that nobody wants it is dropped. */
function requestPage(parts: PageParts, from: Cursor, number: number): Promise<ExtractedPage> {
  const { service, group, sizes, mayRestart, start, requestFor } = parts
  const about = parts.about(number)
  const isTrial = start.isTrial && number === start.page
  const isBound = (): boolean => from.cursor !== null && sizes?.bindsSizes === true
  let size = from.size
  let requests = 0
  let ms = 0
  const sized = (rows: number): ServiceRequest => {
    size = rows
    const isFixed = rows <= MIN_PAGE_SIZE || isTrial || (isBound() && !mayRestart)
    const smaller =
      sizes === null || isFixed ? undefined : () => (isBound() ? null : sized(sizes.after(rows)))
    return { ...requestFor(from.cursor, about, rows), smaller }
  }
  const onSent = (): void => {
    requests++
    parts.onRequest()
  }
  const ask = async (rows: number): Promise<ExtractedPage> => {
    const read: ReadResponse<DecodedPage> = async (body, _where, outcome) => {
      ms = outcome.ms
      const decoded = await parts.read(body, number)
      outcome.hasRows(decoded.items)
      return decoded
    }
    const page = await service.request({ ...sized(rows), group }, read, onSent)
    sizes?.served(size, rows)
    return { page, requests, size, ms }
  }
  /** A cursor goes with the wanted size, then with its own: if only that is accepted, the service binds the two. */
  const inSizes = async (own: number, sizes: PageSizes): Promise<ExtractedPage> => {
    let refusal: ExportError | null = null
    for (const rows of new Set([from.size, own])) {
      const outcome = await ask(rows).catch(refusedCursor)
      if (!(outcome instanceof ExportError)) {
        if (refusal !== null) sizes.bindsSizes = true
        return outcome
      }
      // It came with this very size.
      if (size === own) throw outcome
      refusal = outcome
    }
    // With its own size the page did not come before.
    sizes.bindsSizes = true
    throw new NotServed({ ...refusal!, kind: 'transient', cause: refusal })
  }
  const page = sizes === null || from.ownSize === null ? ask(from.size) : inSizes(from.ownSize, sizes)
  page.catch(() => {})
  return page
}

function refusedCursor(error: unknown): ExportError {
  if (isExportError(error, 'cursor')) return error
  throw error
}
