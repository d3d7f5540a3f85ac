import { setMaxListeners } from 'node:events'
import {
  type Auth,
  type Clock,
  ExportError,
  isExportError,
  isSecondSearch,
  type Log,
  type Measures,
  NOT_MEASURED,
  requireSet,
  type ServiceSettings,
} from '../core/index.ts'
import { httpClient, type RequestSignals, type Token, type TokenSource, tokenSource } from '../http/index.ts'
import { Budget, type RunLimits, type ThisMonth } from './pace/budget.ts'
import { rateLimits } from './pace/rate-limit.ts'
import { SearchCount } from './pace/search-count.ts'
import { type Endpoints, endpoint, endpointsOf, whereOf } from './page-requests.ts'
import {
  BASIC,
  type Outgoing,
  type ReadResponse,
  type SenderParts,
  type ServiceRequest,
} from './sending/outgoing.ts'
import { statusOf } from './sending/responses.ts'
import { Sender } from './sending/sender.ts'
import { exchangedToken, serviceTokens, type TokenInfo, testedToken } from './sending/tokens.ts'

export type ServiceDeps = {
  readonly clock: Clock
  /** Reads a secret by its variable's name when it is needed; null: not set. */
  readSecret(name: string): Promise<string | null>
  /** Stops all sending and ends every wait. */
  readonly stop: AbortSignal
  /** Aborts requests in flight too. */
  readonly abort: AbortSignal
  readonly log: Log
  /** Whether texts of the service are left out of messages: `hidesQueries` of the pipeline. */
  readonly hidesTexts: boolean
  /** Whether the data set had a page before; undefined: no. */
  readonly hasSucceeded?: boolean
  /** Measurements of earlier runs; undefined: none. */
  readonly measures?: Measures
}

export type ServiceLimits = RunLimits & {
  readonly connections: number
}

/** What single calls need, outside a run. */
export type CallDeps = Pick<ServiceDeps, 'clock' | 'readSecret' | 'stop' | 'log' | 'hidesTexts'>

/** Requests that are aborted together. */
export type RequestGroup = RequestSignals & { end(): void }

const SETTING_KEYS = { address: 'service.base_url', timeout: 'service.timeout' } as const

/** The service, as a run uses it: all requests share rate limits, token and budget. */
export class Service {
  readonly endpoints: Endpoints
  readonly #signals: RequestSignals
  readonly #parts: SenderParts
  readonly #sender: Sender
  readonly #tokens: TokenSource

  /** @throws ExportError `config` when a proxy variable holds no address */
  constructor(settings: ServiceSettings, limits: ServiceLimits, deps: ServiceDeps) {
    const { clock, stop, abort, log, hidesTexts, hasSucceeded = false, measures = NOT_MEASURED } = deps
    const { auth, timeoutMs, maxResponseBytes } = settings
    this.endpoints = endpointsOf(settings)
    const signal = AbortSignal.any([stop, abort])
    this.#signals = { signal, abort }
    // There is one listener per wait: with many chains in flight this is not a leak.
    setMaxListeners(0, stop, abort, signal)
    const searches = new SearchCount(
      settings.rowsPerSearch,
      measures.reportsSearchesLeft ?? (isSecondSearch(this.endpoints.search.pathname) ? false : null),
    )
    const { connections } = limits
    this.#parts = {
      http: httpClient({ connections, timeoutMs, maxResponseBytes, keys: SETTING_KEYS }),
      pace: rateLimits(settings, this.endpoints.search, clock),
      budget: new Budget(limits, searches, clock),
      searches,
      settings,
      clock,
      log,
      hidesTexts,
      contact: { isReached: false, hasSucceeded, retries: 0, retrying: 0, clockOffsetMs: null },
    }
    this.#sender = new Sender(this.#parts)
    this.#tokens = serviceTokens({
      auth,
      clock,
      readSecret: async (name) => requireSet(name, await deps.readSecret(name), `variable ${name}`),
      exchange: (keyAuth, apiKey) => this.#exchangeKey(keyAuth, apiKey),
    })
  }

  /** For single calls. */
  static forCalls(settings: ServiceSettings, deps: CallDeps): Service {
    const limits = { maxRequests: null, minSearchesRemaining: null, monthly: null, connections: 1 }
    return new Service(settings, limits, { ...deps, abort: deps.stop })
  }

  get counters() {
    const { contact, budget, searches, pace, clock } = this.#parts
    const pausedForMs = pace.search.pausedForMs()
    return {
      ...contact,
      /** Metered requests written to a connection, retries among them. */
      requests: budget.requests,
      /** On our own pages; null: the service tells of no quota. */
      searchesSpent: searches.spent,
      searchesRemaining: searches.remaining,
      reportsSearchesLeft: searches.isReported,
      /** The end of the pause after a 429 (epoch ms); null: no pause. */
      pausedUntilMs: pausedForMs === 0 ? null : Math.round(clock.now() + pausedForMs),
    }
  }

  thisMonth(): ThisMonth {
    return this.#parts.budget.thisMonth()
  }

  /**
   * Sends a request until `read` accepts the body or the retries are exhausted.
   * @throws ExportError `transient`, `refused`, `cursor`, `credentials`, `quota`, `config`, `data`, `interrupted`;
   * `NotServed` if a page came in no size
   */
  request<T>(
    { group, ...request }: ServiceRequest & { readonly group?: RequestGroup },
    read: ReadResponse<T>,
    onSent: () => void = () => {},
  ): Promise<T> {
    const where = whereOf(request.method, request.url, request.about)
    const { signal, abort } = group ?? this.#signals
    const tokens = this.#tokens
    return this.#sender.send({ ...request, where, tokens, signal, abort, metered: true, onSent }, read)
  }

  /** Begins a group of requests, which ends with the run at the latest. */
  group(): RequestGroup {
    const own = new AbortController()
    return {
      signal: AbortSignal.any([this.#signals.signal, own.signal]),
      abort: AbortSignal.any([this.#signals.abort, own.signal]),
      end: () => own.abort(),
    }
  }

  /** Free of charge, outside the budget; null: the response does not tell. @throws ExportError as `request` does */
  async testToken(url: string, retries = this.#parts.settings.retries): Promise<TokenInfo | null> {
    const outgoing = this.#free('GET', endpoint(this.#parts.settings.baseUrl, url), 'token test')
    return this.#sender.send({ ...outgoing, retries }, async (body, where) =>
      testedToken(body, where, this.#parts.hidesTexts),
    )
  }

  /** A GET runs no search: it is free. @returns the status of an error or of a web page; null: of anything else, or none */
  probeSearch(): Promise<number | null> {
    const outgoing = this.#free('GET', this.endpoints.search, 'search path')
    return this.#sender.send(outgoing, async () => null).catch(statusOf)
  }

  close(): Promise<void> {
    return this.#parts.http.close()
  }

  async #exchangeKey({ tokenUrl, tenantId }: Auth & { kind: 'api-key' }, apiKey: Token): Promise<string> {
    const body = tenantId === null ? null : { tenant_id: tenantId }
    const { settings, clock } = this.#parts
    const url = endpoint(settings.baseUrl, tokenUrl)
    const tokens = tokenSource(clock, async () => apiKey)
    const outgoing = { ...this.#free('POST', url, 'token exchange'), body, tokens }
    return this.#sender
      .send(outgoing, async (bytes, where) => exchangedToken(bytes, where))
      .catch((error: unknown) => {
        if (!isExportError(error, 'refused')) throw error
        // Not the cause: its status would be taken for that of a search.
        const { what, where } = error
        throw new ExportError({ kind: 'config', what, where, next: 'Correct service.token_url.' })
      })
  }

  /** A request of the basic tier outside the budget. */
  #free(method: Outgoing['method'], url: URL, about: string): Outgoing {
    const where = whereOf(method, url, about)
    return { ...BASIC, method, url, about, where, tokens: this.#tokens, ...this.#signals, metered: false }
  }
}
