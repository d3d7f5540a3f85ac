import type { Clock, Log, ServiceSettings } from '../../core/index.ts'
import type { HttpClient, HttpRequest, TokenSource } from '../../http/index.ts'
import type { Budget } from '../pace/budget.ts'
import type { RateLimit, Tier } from '../pace/rate-limit.ts'
import type { SearchCount } from '../pace/search-count.ts'

export type Outgoing = Omit<HttpRequest, 'authorization'> & {
  readonly tier: Tier
  /** The subject of the request, for the log: `domain.acme.com/all, page 3`. */
  readonly about: string
  readonly hasCursor: boolean
  /** Whether the request counts against the budget. */
  readonly metered: boolean
  /** Default: those of the settings. */
  readonly retries?: number
  /** Requested rows; null: it requests no page. */
  readonly size: number | null
  /** The same page with fewer rows, once it did not come in this size; null: none. Absent: its size is as good as any. */
  readonly smaller?: (() => Pick<Outgoing, 'url' | 'body' | 'size' | 'smaller'> | null) | undefined
  /** The feed that is requested, for messages: `the tenant`, `identifier 123`; absent: none is. */
  readonly feed?: string | undefined
  readonly tokens: TokenSource
  readonly onSent?: () => void
}

/** What a caller says of a request. */
export type ServiceRequest = Pick<
  Outgoing,
  'method' | 'url' | 'tier' | 'body' | 'hasCursor' | 'about' | 'size' | 'smaller' | 'feed'
>

/** A request of the basic tier: it has no cursor, and costs no searches. */
export const BASIC = { method: 'GET', tier: 'basic', body: null, hasCursor: false, size: null } as const

/** Reads the body of a response. It requests another attempt by throwing ExportError `transient`. */
export type ReadResponse<T> = (body: Uint8Array, where: string, outcome: ResponseOutcome) => Promise<T>

export type ResponseOutcome = {
  /** The time from the request to the last byte. */
  readonly ms: number
  readonly hasRows: (rows: number) => void
}

type Contact = {
  /** Whether any request was written to a connection. */
  isReached: boolean
  /** Whether the data set ever got a page. Until then any answer may speak about the service, not about its query. */
  hasSucceeded: boolean
  /** Metered requests that were sent again. */
  retries: number
  /** Requests whose last attempt failed. */
  retrying: number
  /** The service's time less this machine's, by the last response; null: none has told it. */
  clockOffsetMs: number | null
}

export type SenderParts = {
  readonly http: HttpClient
  readonly pace: Readonly<Record<Tier, RateLimit>>
  readonly budget: Budget
  readonly searches: SearchCount
  readonly settings: ServiceSettings
  readonly clock: Clock
  readonly log: Log
  readonly hidesTexts: boolean
  readonly contact: Contact
}
