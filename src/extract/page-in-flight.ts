import { type DecodedPage, type DecodePage, type PageIds, withPage } from '../core/index.ts'
import type { ResponseOutcome } from './attempts.ts'
import type { Chain } from './chain.ts'
import { pageRequests } from './page-requests.ts'
import type { Service, ServiceRequest } from './service.ts'
import { interrupted } from './transport/exchange.ts'

// Cursors have some hundred characters at most, so a longer tail is not searched.
const TAIL_BYTES = 8192

/** `next` as the last member of the outermost object, a plain ASCII string without escapes. */
const LAST_MEMBER = /"next"\s*:\s*"([ !#-[\]-~]+)"\s*\}\s*$/

/** The ids of the last pages of a chain. */
type KnownIds = Promise<readonly PageIds[]> | readonly PageIds[]

/** Requests a page. @param known as before that page */
type RequestPage = (cursor: string | null, page: number, known: KnownIds) => PageInFlight

/**
 * @param release called with decoded pages that the consumer does not get
 * @param onNext called when `next` of a page is known, before the page is decoded
 */
export function requestPages(
  service: Service,
  chain: Chain,
  decode: DecodePage,
  release: (page: DecodedPage) => void,
  onNext: (page: PageInFlight) => void,
): RequestPage {
  const requestFor = pageRequests(service, chain)
  return (cursor, page, known) => {
    const request = requestFor(cursor, `${chain.partition()}, page ${page + 1}`)
    return new PageInFlight({ service, chain, decode, release, onNext, request }, { cursor, page, known })
  }
}

type PageParts = {
  readonly service: Service
  readonly chain: Chain
  readonly decode: DecodePage
  readonly release: (page: DecodedPage) => void
  readonly onNext: (page: PageInFlight) => void
  readonly request: ServiceRequest
}

/** A page that has been requested. Its request is sent when it is made. */
export class PageInFlight {
  readonly cursor: string | null
  readonly about: string
  /** A failure reaches the consumer of the page; an aborted page has no consumer. */
  readonly response: Promise<DecodedPage>
  /** The ids of the chain's last pages, once this page is decoded. */
  readonly known: Promise<readonly PageIds[]>
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
  readonly #controller = new AbortController()
  #isSettled = false

  /** @param at where it is in its chain; `known`: the ids of the pages before it */
  constructor(parts: PageParts, at: { cursor: string | null; page: number; known: KnownIds }) {
    const { service, chain, request } = parts
    this.#parts = parts
    this.#page = at.page
    this.cursor = at.cursor
    this.about = request.about
    this.response = service.request(
      { ...request, abort: this.#controller.signal },
      (body, _where, outcome) => this.#read(body, at.known, outcome),
      () => {
        this.requests++
        chain.onRequest()
      },
    )
    this.known = this.response.then(async ({ ids }) => withPage(await at.known, ids))
    this.known.catch(() => {})
    const settle = (): void => {
      this.#isSettled = true
    }
    this.response.then(settle, settle)
  }

  /** Aborts the request in flight and sends no more for this page. */
  abort(): void {
    if (!this.#isSettled) this.#controller.abort()
    if (!this.isHandedOut) this.response.then(this.#parts.release, () => {})
  }

  async #read(body: Uint8Array, known: KnownIds, outcome: ResponseOutcome): Promise<DecodedPage> {
    const { chain, decode, onNext } = this.#parts
    this.ms = outcome.ms
    this.next = nextAtEnd(body)
    onNext(this)
    // Rows of the previous page are dropped when they repeat, so that page has to be decoded first.
    const recent = await before(known, this.about)
    const { query, requested, queryValue, since, feed } = chain
    const [partition, own] = [chain.partition(), chain.own()]
    const decoded = await decode(body, {
      query,
      partition,
      page: this.#page,
      requested,
      own,
      queryValue,
      since,
      recent,
      feed,
    })
    outcome.hasRows(decoded.items)
    return decoded
  }
}

/** @throws ExportError `interrupted` when the previous page failed: its own error is thrown where it is awaited */
async function before(known: KnownIds, about: string): Promise<readonly PageIds[]> {
  try {
    return await known
  } catch {
    throw interrupted(about)
  }
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
