import type { Clock, Log, ServiceSettings } from '../core/index.ts'
import type { HttpClient, HttpRequest, TokenSource } from '../http/index.ts'
import type { Tier } from './endpoints.ts'
import type { Budget } from './pace/budget.ts'
import type { Sizing } from './pace/page-sizes.ts'
import type { RateLimit } from './pace/rate-limit.ts'
import type { SearchLedger } from './pace/search-ledger.ts'
import type { WaitBoard } from './wait-board.ts'

/** A request to the service. */
export type Outgoing = Omit<HttpRequest, 'headers'> & {
  readonly tier: Tier
  /** The subject of the request, for the log: `domain.acme.com/all, page 3`. */
  readonly about: string
  /** Whether the request has a cursor. */
  readonly hasCursor: boolean
  /** Whether the request counts against the budget. */
  readonly metered: boolean
  /** Requested rows, if they may cost searches; null: the request costs none. */
  readonly size: number | null
  /** As of `Chain`. */
  readonly sizing: Sizing | null
  /** The feed that is requested, for messages: `the tenant`, `identifier 123`; absent: none is. */
  readonly feed?: string | undefined
  readonly tokens: TokenSource
  /** Called each time the request is written to a connection. */
  readonly onSent?: () => void
}

/** A request of the basic tier: it has no cursor, and costs no searches. */
export const BASIC = {
  method: 'GET',
  tier: 'basic',
  body: null,
  hasCursor: false,
  size: null,
  sizing: null,
} as const

/** Reads the body of a response. It requests another attempt by throwing ExportError `transient`. */
export type ReadResponse<T> = (body: Uint8Array, where: string, outcome: ResponseOutcome) => Promise<T>

export type ResponseOutcome = {
  /** The time from the request to the last byte. */
  readonly ms: number
  /** Receives the number of rows. */
  readonly hasRows: (rows: number) => void
}

/** What requests have shown about a service. */
export type Contact = {
  /** Whether any request was written to a connection. */
  isReached: boolean
  /** Whether a search ever succeeded. */
  isFound: boolean
  /** Searches with response 404 before the first success; 0 from then on. A 404 to a cursor may concern the cursor. */
  notFound: number
  /** Metered requests that were sent again. */
  retries: number
}

export type SenderParts = {
  readonly http: HttpClient
  readonly pace: Readonly<Record<Tier, RateLimit>>
  readonly budget: Budget
  readonly ledger: SearchLedger
  readonly settings: ServiceSettings
  readonly clock: Clock
  readonly log: Log
  /** As in `ServiceDeps`. */
  readonly hidesTexts: boolean
  readonly contact: Contact
  readonly board: WaitBoard
  /** As in `ServiceDeps`. */
  readonly onDate?: ((dateMs: number) => void) | undefined
}
