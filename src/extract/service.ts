import { setMaxListeners } from 'node:events'
import {
  type Auth,
  type BufferPool,
  type Clock,
  ExportError,
  type Measures,
  NOT_MEASURED,
  type PageCost,
  type RunLimits,
  requireSet,
  type ServiceSettings,
} from '../core/index.ts'
import { type Endpoints, endpoint, endpointsOf, isSecondSearch, rateLimits, whereOf } from './endpoints.ts'
import { Budget } from './pace/budget.ts'
import { PageTooLarge } from './pace/page-sizes.ts'
import { retry, TryAgain } from './pace/retry.ts'
import { SearchLedger } from './pace/search-ledger.ts'
import { ResponseError } from './responses.ts'
import { asTryAgain, type Log, type Outgoing, Sender, type SentOk } from './sender.ts'
import { ServiceCounters } from './service-counters.ts'
import {
  always,
  exchangedToken,
  type Token,
  type TokenInfo,
  type TokenSource,
  testedToken,
  tokenSource,
} from './tokens.ts'
import { interrupted } from './transport/exchange.ts'
import { type HttpClient, httpClient } from './transport/http-client.ts'
import { UnreachableError } from './transport/network-error.ts'
import { CurrentWaits, type Waits } from './wait-board.ts'

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
  /** Searches left, as earlier runs last saw; undefined or null: not known. */
  readonly searchesLeft?: number | null
  /** Called when `Service.waits` changes. */
  readonly onWait?: () => void
  /** Receives the service's time with each successful response, before it is read. What it throws ends the request. */
  readonly onDate?: (dateMs: number) => void
}

export type ServiceLimits = RunLimits & {
  /** The maximum number of connections to each host. */
  readonly connections: number
}

export type ServiceRequest = Pick<
  Outgoing,
  'method' | 'url' | 'tier' | 'body' | 'hasCursor' | 'about' | 'size' | 'sizing' | 'feed'
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

/** The service, as a run uses it: all requests share rate limits, token and budget. */
export class Service {
  readonly counters: ServiceCounters
  readonly endpoints: Endpoints
  readonly #settings: ServiceSettings
  readonly #deps: ServiceDeps
  /** Ends every wait. */
  readonly #signal: AbortSignal
  readonly #http: HttpClient
  readonly #board: CurrentWaits
  readonly #sender: Sender
  readonly #tokens: TokenSource
  /** Reasons for retries that were warned of since the service last gave a usable response. */
  readonly #reasons = new Set<string>()
  #newCosts: PageCost[] = []

  /** @throws ExportError `config` when an address is no URL */
  constructor(settings: ServiceSettings, limits: ServiceLimits, deps: ServiceDeps) {
    const { clock, stop, abort, log, measures = NOT_MEASURED } = deps
    const { auth, timeoutMs, maxResponseBytes } = settings
    this.#settings = settings
    this.#deps = deps
    this.endpoints = endpointsOf(settings)
    this.#signal = AbortSignal.any([stop, abort])
    // There is one listener per wait: with many chains in flight this is not a leak.
    setMaxListeners(0, stop, abort, this.#signal)
    const ledger = new SearchLedger(
      measures,
      measures.reportsSearchesLeft ?? (isSecondSearch(this.endpoints) ? false : null),
      (cost, usual) => this.#onCost(cost, usual),
      deps.searchesLeft,
    )
    const budget = new Budget(limits, ledger, clock)
    const pace = rateLimits(settings, this.endpoints, clock)
    this.counters = new ServiceCounters(budget, ledger, pace.search, clock)
    this.#board = new CurrentWaits(
      () => clock.now(),
      () => deps.onWait?.(),
    )
    this.#http = httpClient({
      connections: limits.connections,
      timeoutMs,
      maxResponseBytes,
      buffers: deps.buffers,
      stop,
      abort,
    })
    this.#sender = new Sender({
      http: this.#http,
      pace,
      budget,
      ledger,
      auth,
      clock,
      log,
      counters: this.counters,
      board: this.#board,
    })
    this.#tokens = tokenSource({
      auth,
      clock,
      readSecret: async (name) => requireSet(name, await deps.readSecret(name), `variable ${name}`),
      exchange: (keyAuth, apiKey) => this.#exchangeKey(keyAuth, apiKey),
    })
  }

  /** What requests wait for at present. */
  get waits(): Waits {
    return this.#board.waits
  }

  /**
   * Sends a request with the token, after it has a permit, until `read` accepts the response's body or the retries are
   * exhausted.
   * `read` requests another attempt by throwing ExportError `transient`.
   * @param onSent called each time the request is written to a connection
   * @throws ExportError `transient`, `refused`, `cursor`, `credentials`, `quota`, `config`, `data`, `interrupted`;
   *   {@link PageTooLarge} if a smaller page can be requested
   */
  async request<T>(
    { abort, ...request }: ServiceRequest,
    read: ReadResponse<T>,
    onSent: () => void = () => {},
  ): Promise<T> {
    const where = whereOf(request.method, request.url, request.about)
    const signal = abort === undefined ? this.#signal : AbortSignal.any([this.#signal, abort])
    const outgoing = { ...request, where, signal, abort: abort ?? null, metered: true }
    try {
      return await this.#send(outgoing, read, onSent)
    } catch (error) {
      if (error instanceof PageTooLarge && error.isSent) await this.#rest(error, signal)
      throw error
    }
  }

  /** The costs of pages measured since the last call. */
  takeCosts(): readonly PageCost[] {
    const costs = this.#newCosts
    this.#newCosts = []
    return costs
  }

  /**
   * Requests what the token permits: free of charge, outside the budget.
   * @returns null when the response does not contain it
   * @throws ExportError as `request` does
   */
  async testToken(url: string): Promise<TokenInfo | null> {
    const outgoing = this.#free('GET', endpoint(this.#settings.baseUrl, url), 'token test')
    return this.#send(outgoing, async (body, where) => testedToken(body, where))
  }

  /**
   * Tests whether the search path exists, with a GET, which runs no search: free of charge, outside the budget.
   * @returns the status of the response
   * @throws ExportError as `request` does
   */
  async probeSearch(): Promise<number> {
    try {
      return await this.#send(this.#free('GET', this.endpoints.search, 'search path'), async () => 200)
    } catch (error) {
      if (error instanceof ResponseError) return error.status
      throw error
    }
  }

  /** Closes every connection. */
  close(): Promise<void> {
    return this.#http.close()
  }

  /** Sends with the token, which is renewed once if it is rejected. */
  async #send<T>(outgoing: Outgoing, read: ReadResponse<T>, onSent: () => void = () => {}): Promise<T> {
    let wasRejected = false
    return this.#repeat(outgoing, async (attempt) => {
      const sent = await this.#sender.send(outgoing, attempt, this.#tokens, onSent)
      if (sent.kind === 'ok') return this.#readWith(read, sent, outgoing.where)
      if (wasRejected) throw sent.error
      wasRejected = true
      await this.#tokens.replace(sent.token, sent.error)
      throw new TryAgain(tokenExpired(outgoing.where), 'pace')
    })
  }

  /** Exchanges an API key for a token. */
  async #exchangeKey({ tokenUrl, tenantId }: Auth & { kind: 'api-key' }, apiKey: Token): Promise<string> {
    const body = tenantId === null ? null : JSON.stringify({ tenant_id: tenantId })
    const url = endpoint(this.#settings.baseUrl, tokenUrl)
    const outgoing = { ...this.#free('POST', url, 'token exchange'), body }
    return this.#repeat(outgoing, async (attempt) => {
      const sent = await this.#sender.send(outgoing, attempt, always(apiKey), () => {})
      if (sent.kind === 'unauthorised') throw sent.error
      return this.#readWith(async (bytes, where) => exchangedToken(bytes, where), sent, outgoing.where)
    })
  }

  /** Has a response read, and releases it. */
  async #readWith<T>(
    read: ReadResponse<T>,
    { body, ms, dateMs, flight, release }: SentOk,
    where: string,
  ): Promise<T> {
    let rows: number | null = null
    const hasRows = (count: number): void => {
      rows = count
    }
    try {
      if (dateMs !== null) this.#deps.onDate?.(dateMs)
      const value = await read(body, where, { ms, hasRows })
      this.#reasons.clear()
      return value
    } catch (error) {
      throw asTryAgain(error)
    } finally {
      flight?.rows(rows)
      release()
    }
  }

  /** Repeats an attempt as configured. Every kind of stop becomes the same error. */
  async #repeat<T>({ about, where, signal }: Outgoing, attempt: (number: number) => Promise<T>): Promise<T> {
    try {
      return await retry(attempt, {
        retries: this.#settings.retries,
        clock: this.#deps.clock,
        signal,
        isHopeless: (error, sent) =>
          !this.counters.isReached &&
          error instanceof UnreachableError &&
          sent >= RETRIES_OF_A_FIRST_CONNECTION,
        onRetry: ({ what }, waitMs, number) => this.#onRetry(about, what, waitMs, number),
      })
    } catch (error) {
      // After a stop there is no time for a retry, which may have succeeded.
      const stopped =
        signal.aborted &&
        (error === signal.reason || !(error instanceof ExportError) || error.kind === 'transient')
      throw stopped ? interrupted(where) : error
    }
  }

  /** @returns to be called after the wait */
  #onRetry(about: string, reason: string, waitMs: number, number: number): () => void {
    const of = this.#settings.retries
    // The wait after a 429 is logged already. All chains meet an outage: it is one warning.
    const isWarning = waitMs > 0 && !this.#reasons.has(reason)
    if (isWarning) this.#reasons.add(reason)
    this.#deps.log(isWarning ? 'warn' : 'debug', 'trying again', {
      event: 'retry',
      request: about,
      retry: number,
      of,
      wait_ms: Math.round(waitMs),
      reason,
    })
    return this.#board.retry({ number, of, reason }, waitMs)
  }

  /** A short wait after a page that could not be served. */
  async #rest({ what, where }: PageTooLarge, signal: AbortSignal): Promise<void> {
    const isOver = this.#board.retry({ number: 1, of: 1, reason: what }, SMALLER_PAGE_MS)
    try {
      await this.#deps.clock.sleep(SMALLER_PAGE_MS, signal)
    } catch {
      throw interrupted(where)
    } finally {
      isOver()
    }
  }

  #onCost(cost: PageCost, usual: number): void {
    this.#newCosts.push(cost)
    const [rows, searches] = cost
    if (searches <= 3 * usual + 2) return
    const message = 'the number of searches left fell by more than a page costs: others spend as well'
    this.#deps.log('info', message, { event: 'quota.outlier', rows, searches, usual })
  }

  /** A request of the basic tier outside the budget. */
  #free(method: Outgoing['method'], url: URL, about: string): Outgoing {
    return {
      method,
      url,
      about,
      where: whereOf(method, url, about),
      signal: this.#signal,
      abort: null,
      tier: 'basic',
      body: null,
      hasCursor: false,
      metered: false,
      size: null,
      sizing: null,
    }
  }
}

function tokenExpired(where: string): ExportError {
  return new ExportError({
    kind: 'transient',
    what: 'The token was rejected and has been renewed',
    where,
    next: 'Run again: the export resumes where it stopped.',
  })
}
