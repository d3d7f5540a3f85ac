import * as z from 'zod'
import {
  type BufferPool,
  bufferPool,
  type Clock,
  ExportError,
  freshBuffers,
  type Log,
  mayCost,
  type Pipeline,
  type Query,
  type ServiceSettings,
  type Window,
} from '../core/index.ts'
import {
  type ChainRequest,
  fetchReport,
  isWebPage,
  pageRequests,
  type ReadResponse,
  type Report,
  ResponseError,
  type RunLimits,
  Service,
  type TokenInfo,
} from '../extract/index.ts'

export type { Report }

type ServiceCallOptions = {
  readonly clock: Clock
  readonly readSecret: (name: string) => Promise<string | null>
  /** Ends waits and requests. */
  readonly stop: AbortSignal
  readonly log: Log
  /** As of `ServiceDeps`. */
  readonly hidesTexts: boolean
  /** As of `ServiceDeps`. */
  readonly onDate?: (dateMs: number) => void
}

/** Threat-flow reports, which cost no searches. They share a connection, a token and the rate limit. */
export type Reports = {
  /** @throws ExportError naming the report */
  fetch(id: number): Promise<Report>
  close(): Promise<void>
}

export function openReports(settings: ServiceSettings, options: ServiceCallOptions): Reports {
  const service = openCalls(settings, options)
  return { fetch: (id) => fetchReport(service, id), close: () => service.close() }
}

export type TokenTest = {
  readonly url: string
  /** null: the service has no such test. */
  readonly info: TokenInfo | null
}

/** Whether the search path exists; `unknown`: the response to a GET does not show it. */
export type SearchPath = {
  readonly url: string
  readonly found: 'yes' | 'no' | 'web page' | 'redirect' | 'unknown'
}

/**
 * Requests once, free of charge, to whom the token belongs: at the configured address, or else at that of the public
 * API, which not every service has.
 * @throws ExportError `credentials` when the token is rejected
 */
export function testToken(settings: ServiceSettings, options: ServiceCallOptions): Promise<TokenTest> {
  return requestedOnce(settings, options, (service) => tokenTest(service, settings))
}

/**
 * Tests the token, and whether the search path exists. Sends no search.
 * @throws ExportError `credentials` when the token is rejected
 */
export function testService(
  settings: ServiceSettings,
  options: ServiceCallOptions,
): Promise<{ readonly token: TokenTest; readonly search: SearchPath }> {
  return requestedOnce(settings, options, async (service) => {
    const token = await tokenTest(service, settings)
    const { origin, pathname } = service.endpoints.search
    const found = await service.probeSearch().then(foundBy, () => 'unknown' as const)
    return { token, search: { url: `${origin}${pathname}`, found } }
  })
}

/** The meaning of a GET's response from an address that accepts only POST. */
function foundBy(status: number | null): SearchPath['found'] {
  if (status === 200) return 'web page'
  if (status === 404) return 'no'
  if (status !== null && status >= 300 && status < 400) return 'redirect'
  return status !== null && THERE.has(status) ? 'yes' : 'unknown'
}

const THERE: ReadonlySet<number> = new Set([400, 401, 405, 415, 422])

/**
 * @param retries default: those of the service
 * @throws ExportError as {@link testToken}
 */
export async function tokenTest(
  service: Service,
  { auth, baseUrl }: ServiceSettings,
  retries?: number,
): Promise<TokenTest> {
  // Beside the exchange. Source: public API documentation.
  const url =
    auth.kind === 'api-key' ? new URL('test', auth.tokenUrl).href : new URL('/tokens/test', baseUrl).href
  try {
    return { url, info: await service.testToken(url, retries) }
  } catch (error) {
    // The service may have no test. Only a rejected token is meaningful.
    if (isWebPage(error) || (error instanceof ResponseError && error.status !== 401))
      return { url, info: null }
    throw error
  }
}

async function requestedOnce<T>(
  settings: ServiceSettings,
  options: ServiceCallOptions,
  request: (service: Service) => Promise<T>,
): Promise<T> {
  // No retries: the caller needs the current state.
  const service = openCalls({ ...settings, retries: 0 }, options)
  try {
    return await request(service)
  } finally {
    await service.close()
  }
}

const UNLIMITED: RunLimits = { maxRequests: null, minSearchesRemaining: null, monthly: null }

function openCalls(
  settings: ServiceSettings,
  options: ServiceCallOptions & { readonly buffers?: BufferPool },
  limits = UNLIMITED,
): Service {
  const { stop: abort } = options
  return new Service(settings, { ...limits, connections: 1 }, { buffers: bufferPool(1), ...options, abort })
}

/** The cost of a page, measured by two requests. */
export type Probe = {
  /**
   * `nothing`: the service does not report searches; `free`: the page cost nothing, as one that was requested in the last
   * ten minutes; `unknown`: these requests do not show it.
   */
  readonly reading: 'request' | '100 rows' | 'nothing' | 'free' | 'unknown'
  /** The rows of the measured page, and the searches that it cost; null: there was none. */
  readonly page: { readonly rows: number; readonly searches: number } | null
  readonly requests: number
  readonly searchesRemaining: number | null
}

/** Two such pages cost four searches by the more expensive reading. */
const PROBE_ROWS = 200

/**
 * Measures what a page costs: requests a page and, if there is one, the next. The first shows what is left before the
 * second. The same search again would not do: it is free within ten minutes, by both readings.
 * @throws ExportError as `Service.request`; `quota` when too few searches are left
 */
export async function probeService(pipeline: Pipeline, options: ServiceCallOptions): Promise<Probe> {
  const { extract } = pipeline
  const { minSearchesRemaining } = extract
  const limits = { maxRequests: 2, minSearchesRemaining, monthly: null }
  const calls = { ...options, buffers: freshBuffers }
  const service = openCalls({ ...pipeline.service, retries: 0 }, calls, limits)
  try {
    const size = Math.min(PROBE_ROWS, extract.pageSize)
    const requestFor = pageRequests(service, await searchOf(pipeline, options))
    const pageAt = (cursor: string | null) => service.request(requestFor(cursor, 'probe', size), counted)
    const { next, items } = await pageAt(null)
    if (service.counters.reportsSearchesLeft !== true) return probe('nothing', null, service)
    if (next === null || items < PROBE_ROWS) return probe('unknown', null, service)
    const before = service.counters.searchesRemaining!
    const { items: rows } = await pageAt(next)
    const dear = mayCost(null, rows)
    if (dear === 1) return probe('unknown', null, service)
    const page = { rows, searches: Math.max(0, before - service.counters.searchesRemaining!) }
    // Else others spend as well.
    const readings = new Map<number, Probe['reading']>([
      [0, 'free'],
      [1, 'request'],
      [dear, '100 rows'],
    ])
    return probe(readings.get(page.searches) ?? 'unknown', page, service)
  } finally {
    await service.close()
  }
}

function probe(reading: Probe['reading'], page: Probe['page'], { counters }: Service): Probe {
  const { requests, searchesRemaining } = counters
  return { reading, page, requests, searchesRemaining }
}

/** The first query without a secret, else the first query, over all of its windows. */
async function searchOf(
  { extract }: Pipeline,
  { clock, readSecret }: ServiceCallOptions,
): Promise<ChainRequest> {
  const { resource, queries, windows, include, order } = extract
  const query: Query | undefined = queries.find(({ type }) => type !== 'secret') ?? queries[0]
  if (query === undefined) throw new Error('a pipeline without a query')
  const requested: Window | null =
    windows === null
      ? null
      : { from: windows.from, until: windows.until === 'now' ? clock.now() * 1000 : windows.until }
  return {
    resource,
    query: { ...query, name: 'probe' },
    requested,
    since: null,
    include,
    order,
    secret: query.type === 'secret' ? await readSecret(query.secretEnv) : null,
  }
}

const SearchResponse = z.object({ items: z.array(z.unknown()), next: z.string().nullish() })

/** Counts the items and reads whether there are more; their contents are ignored. */
const counted: ReadResponse<{ readonly items: number; readonly next: string | null }> = async (
  body,
  where,
  { hasRows },
) => {
  const response = SearchResponse.safeParse(parsed(body))
  if (!response.success) {
    throw new ExportError({
      kind: 'data',
      what: 'The response is none of a credential search',
      where,
      next: 'Check service.search_path.',
    })
  }
  const { items, next = null } = response.data
  hasRows(items.length)
  return { items: items.length, next }
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  } catch {
    return null
  }
}
