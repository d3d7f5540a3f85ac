import { setMaxListeners } from 'node:events'
import {
  type Auth,
  type BufferPool,
  type Clock,
  ExportError,
  type Measures,
  type Month,
  NOT_MEASURED,
  type PageCost,
  type RunLimits,
  requireSet,
  type ServiceSettings,
} from '../core/index.ts'
import { Budget } from './pace/budget.ts'
import { rateLimit } from './pace/rate-limit.ts'
import { retry, TryAgain } from './pace/retry.ts'
import { SearchLedger } from './pace/search-ledger.ts'
import { ResponseError } from './responses.ts'
import {
  asTryAgain,
  type Log,
  type Outgoing,
  PageTooLarge,
  type Send,
  sender,
  WaitBoard,
  type Waits,
} from './sender.ts'
import { always, exchangedToken, type Token, type TokenInfo, testedToken, tokenSource } from './tokens.ts'
import { httpClient, interrupted, isSuccess } from './transport/http-client.ts'
import { UnreachableError } from './transport/network-error.ts'

export type ServiceDeps = {
  readonly clock: Clock
  /** Reads a secret by its variable's name when it is needed; null: not set. */
  readSecret(name: string): Promise<string | null>
  /** Stops all sending and ends every wait. */
  readonly stop: AbortSignal
  /** Aborts requests in flight too. */
  readonly abort: AbortSignal
  /** The pool of response buffers. */
  readonly buffers: BufferPool
  readonly log: Log
  /** Measurements of earlier runs; undefined: none. */
  readonly measures?: Measures
  /** Called when `Service.waits` changes. */
  readonly onWait?: () => void
}

export type ServiceLimits = RunLimits & {
  /** The maximum number of connections to each host. */
  readonly connections: number
}

/** The service, as a run uses it: all requests share rate limits, token and budget. */
export type Service = {
  readonly counters: {
    /** Searches and report requests written to a connection, retries among them. */
    readonly requests: number
    /** Requests sent in a calendar month, UTC. */
    readonly requestsIn: (month: Month) => number
    readonly retries: number
    /** By the last response; null: there is none yet. */
    readonly searchesRemaining: number | null
    /** Quota spent, by what responses report as left; null: they do not report it. */
    readonly searchesSpent: number | null
    /** The same of a calendar month, UTC. */
    readonly searchesIn: (month: Month) => number | null
    /** Whether responses report what is left; null: there is none yet. */
    readonly tellsSearches: boolean | null
    /** The measured costs of pages. */
    readonly costs: readonly PageCost[]
    /** The end of the pause after a 429 (epoch ms); null: no pause. */
    readonly pausedUntilMs: number | null
    /** Searches with response 404 before the first success; 0 from then on. */
    readonly notFound: number
    /** Whether any request was written to a connection. */
    readonly isReached: boolean
  }
  readonly waits: Waits
  readonly endpoints: { readonly search: URL; readonly reports: URL }
  /**
   * Sends a request with the token, after it has a permit, until `read` accepts the response's body or the retries are
   * exhausted.
   * `read` requests another attempt by throwing ExportError `transient`.
   * @param onSent called each time the request is written to a connection
   * @throws ExportError `transient`, `refused`, `cursor`, `credentials`, `quota`, `config`, `data`, `interrupted`;
   *   {@link PageTooLarge} if a smaller page can be requested
   */
  request<T>(request: ServiceRequest, read: ReadResponse<T>, onSent?: () => void): Promise<T>
  /** The costs of pages measured since the last call. */
  takeCosts(): readonly PageCost[]
  /**
   * Requests what the token permits: free of charge, outside the budget.
   * @returns null when the response does not contain it
   * @throws ExportError as `request` does
   */
  testToken(url: string): Promise<TokenInfo | null>
  /**
   * Tests whether the search path exists, with a GET, which runs no search: free of charge, outside the budget.
   * @returns the status of the response
   * @throws ExportError as `request` does
   */
  probeSearch(): Promise<number>
  /** Closes every connection. */
  close(): Promise<void>
}

export type ServiceRequest = Pick<
  Outgoing,
  'method' | 'url' | 'tier' | 'body' | 'hasCursor' | 'about' | 'size' | 'canShrink'
> & {
  /** Aborts the request, also if it is in flight. */
  readonly abort?: AbortSignal
}
type ReadResponse<T> = (body: Uint8Array, where: string, outcome: ResponseOutcome) => Promise<T>

export type ResponseOutcome = {
  /** The time it took. */
  readonly ms: number
  /** Receives the number of rows. */
  readonly hasRows: (rows: number) => void
}

// After a page that the service could not serve, the next request waits.
const SMALLER_PAGE_MS = 500

// A host or port that was never reached is more often mistyped than briefly unavailable: retries take some 6 s.
const RETRIES_OF_A_FIRST_CONNECTION = 4

/** @throws ExportError `config` when an address is no URL */
export function openService(settings: ServiceSettings, limits: ServiceLimits, deps: ServiceDeps): Service {
  const { clock, stop, abort, log } = deps
  const { auth, timeoutMs, maxResponseBytes } = settings
  const endpoints = {
    search: endpoint(settings.baseUrl, settings.searchPath),
    reports: endpoint(settings.baseUrl, settings.reportPath),
  }
  const signal = AbortSignal.any([stop, abort])
  // There is one listener per wait: with many chains in flight this is not a leak.
  setMaxListeners(0, stop, abort, signal)
  const http = httpClient({
    connections: limits.connections,
    timeoutMs,
    maxResponseBytes,
    buffers: deps.buffers,
    stop,
    abort,
  })
  const measures = deps.measures ?? NOT_MEASURED
  const newCosts: PageCost[] = []
  const ledger = new SearchLedger(
    measures,
    measures.tellsSearches ?? (SECOND_SEARCH.test(endpoints.search.pathname) ? false : null),
    (cost, usual) => {
      newCosts.push(cost)
      logOutlier(cost, usual)
    },
  )
  const spending = new Budget(limits, ledger, clock)
  const pace = ownPace(settings, endpoints.search, clock)
  let notFound = 0
  let isFound = false
  const onStatus = (status: number, hasCursor: boolean): void => {
    if (isSuccess(status)) isFound = true
    // The status of a request with a cursor may concern the cursor, not the path.
    else if (status === 404 && !hasCursor) notFound++
  }
  const onWait = deps.onWait ?? (() => {})
  const board = new WaitBoard(() => clock.now(), onWait)
  let isReached = false
  const sendWithPermit = sender({ http, pace, budget: spending, ledger, auth, clock, log, onStatus, board })
  const send: Send = (outgoing, attempt, token, onSent) =>
    sendWithPermit(outgoing, attempt, token, () => {
      isReached = true
      onSent()
    })
  const tokens = tokenSource({ auth, clock, readSecret, exchange })
  let retries = 0

  function logOutlier([rows, searches]: PageCost, usual: number): void {
    if (searches <= 3 * usual + 2) return
    const message = 'the number of searches left fell by more than a page costs: others spend as well'
    log('info', message, { event: 'quota.outlier', rows, searches, usual })
  }

  async function readSecret(name: string): Promise<string> {
    return requireSet(name, await deps.readSecret(name), `variable ${name}`)
  }

  /** Repeats an attempt as configured. Every kind of stop becomes the same error. */
  async function repeat<T>(
    { about, where, signal }: Pick<Outgoing, 'about' | 'where' | 'signal'>,
    attempt: (number: number) => Promise<T>,
  ): Promise<T> {
    try {
      return await retry(attempt, {
        retries: settings.retries,
        clock,
        signal,
        isHopeless: (error, sent) =>
          !isReached && error instanceof UnreachableError && sent >= RETRIES_OF_A_FIRST_CONNECTION,
        onRetry: ({ what: reason }, waitMs, number) => {
          const of = settings.retries
          // The wait after a 429 is logged already.
          log(waitMs === 0 ? 'debug' : 'warn', 'trying again', {
            event: 'retry',
            request: about,
            retry: number,
            of,
            wait_ms: Math.round(waitMs),
            reason,
          })
          return board.retry({ number, of, reason }, waitMs)
        },
      })
    } catch (error) {
      // After a stop there is no time for a retry, which may have succeeded.
      const stopped =
        signal.aborted &&
        (error === signal.reason || !(error instanceof ExportError) || error.kind === 'transient')
      throw stopped ? interrupted(where) : error
    }
  }

  /** A short wait before a smaller page is requested. */
  async function rest({ what, where }: PageTooLarge, signal: AbortSignal): Promise<void> {
    const isOver = board.retry({ number: 1, of: 1, reason: what }, SMALLER_PAGE_MS)
    try {
      await clock.sleep(SMALLER_PAGE_MS, signal)
    } catch {
      throw interrupted(where)
    } finally {
      isOver()
    }
  }

  async function exchange(
    { tokenUrl, tenantId }: Auth & { kind: 'api-key' },
    apiKey: Token,
  ): Promise<string> {
    const outgoing = freeRequest(endpoint(settings.baseUrl, tokenUrl), 'token exchange', {
      signal,
      method: 'POST',
      body: tenantId === null ? null : JSON.stringify({ tenant_id: tenantId }),
    })
    return repeat(outgoing, async (attempt) => {
      const sent = await send(outgoing, attempt, always(apiKey), () => {})
      if (sent.kind === 'unauthorised') throw sent.error
      sent.release()
      return accepted(async () => exchangedToken(sent.body, outgoing.where))
    })
  }

  /** Sends with the token, which is renewed once if it is rejected. */
  async function requestWithRetries<T>(
    outgoing: Outgoing,
    read: ReadResponse<T>,
    onSent: () => void = () => {},
  ): Promise<T> {
    let refusedBefore = false
    return repeat(outgoing, async (attempt) => {
      const sent = await send(outgoing, attempt, tokens, () => {
        if (attempt > 1 && outgoing.metered) retries++
        onSent()
      })
      if (sent.kind === 'ok') {
        const { ms, flight } = sent
        let rows: number | null = null
        const hasRows = (count: number): void => {
          rows = count
        }
        try {
          return await accepted(() => read(sent.body, outgoing.where, { ms, hasRows }))
        } finally {
          flight?.rows(rows)
          sent.release()
        }
      }
      if (refusedBefore) throw sent.error
      refusedBefore = true
      await tokens.replace(sent.token, sent.error)
      throw new TryAgain(tokenExpired(outgoing.where), 'pace')
    })
  }

  return {
    counters: {
      get requests() {
        return spending.requests
      },
      requestsIn: (month) => spending.requestsIn(month),
      get retries() {
        return retries
      },
      get searchesRemaining() {
        return ledger.remaining
      },
      get searchesSpent() {
        return ledger.spent
      },
      searchesIn: (month) => spending.searchesIn(month),
      get tellsSearches() {
        return ledger.isReported
      },
      get costs() {
        return ledger.costs
      },
      get pausedUntilMs() {
        const leftMs = pace.search.pausedForMs()
        return leftMs === 0 ? null : Math.round(clock.now() + leftMs)
      },
      get isReached() {
        return isReached
      },
      get notFound() {
        return isFound ? 0 : notFound
      },
    },
    get waits() {
      return board.waits
    },
    endpoints,
    async request({ abort, ...request }, read, onSent) {
      const where = whereOf(request.method, request.url, request.about)
      const ends =
        abort === undefined ? { signal, abort: null } : { signal: AbortSignal.any([signal, abort]), abort }
      try {
        return await requestWithRetries({ ...request, ...ends, where, metered: true }, read, onSent)
      } catch (error) {
        if (error instanceof PageTooLarge) await rest(error, ends.signal)
        throw error
      }
    },
    takeCosts: () => newCosts.splice(0),
    async testToken(url) {
      const outgoing = freeRequest(endpoint(settings.baseUrl, url), 'token test', {
        signal,
        method: 'GET',
        body: null,
      })
      return requestWithRetries(outgoing, async (body, where) => testedToken(body, where))
    },
    async probeSearch() {
      const parts = { signal, method: 'GET', body: null } as const
      const outgoing = freeRequest(endpoints.search, 'search path', parts)
      try {
        return await requestWithRetries(outgoing, async () => 200)
      } catch (error) {
        if (error instanceof ResponseError) return error.status
        throw error
      }
    },
    close: () => http.close(),
  }
}

/** The second search: the public documentation assigns it no tier and no quota. */
const SECOND_SEARCH = /\/astp\/v2\/credentials\/_search\/?$/

function ownPace({ requestsPerSecond, basicRequestsPerSecond }: ServiceSettings, search: URL, clock: Clock) {
  // The rate limit of the second search is not known: sources name four requests a second, and one.
  const slowest = SECOND_SEARCH.test(search.pathname) ? { slowestPerSecond: 1 } : {}
  return {
    search: rateLimit({ requestsPerSecond, clock, ...slowest }),
    basic: rateLimit({ requestsPerSecond: basicRequestsPerSecond, clock }),
  }
}

/** An address of the settings: absolute, or a path below the base. */
function endpoint(baseUrl: string, pathOrUrl: string): URL {
  const text = /^https?:\/\//i.test(pathOrUrl)
    ? pathOrUrl
    : `${baseUrl.replace(/\/+$/, '')}/${pathOrUrl.replace(/^\/+/, '')}`
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && /^https?:$/.test(url.protocol)) return url
  throw new ExportError(
    'config',
    "The service's address is no http or https URL",
    'service',
    'Correct service.base_url or the path.',
  )
}

/** A request of the basic tier outside the budget. */
function freeRequest(url: URL, about: string, parts: Pick<Outgoing, 'method' | 'body' | 'signal'>): Outgoing {
  const where = whereOf(parts.method, url, about)
  const free = { hasCursor: false, metered: false, size: null, canShrink: false, abort: null }
  return { ...parts, ...free, url, tier: 'basic', about, where }
}

/** Without the query string: cursors are long and unreadable. */
function whereOf(method: string, url: URL, about: string): string {
  return `${method} ${url.origin}${url.pathname}, ${about}`
}

async function accepted<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw asTryAgain(error)
  }
}

function tokenExpired(where: string): ExportError {
  return new ExportError(
    'transient',
    'The token was rejected and has been renewed',
    where,
    'Run again: the export resumes where it stopped.',
  )
}
