import { bufferPool, type Clock, ExportError, type ServiceSettings } from '../core/index.ts'
import {
  fetchReport,
  openService,
  type Report,
  ResponseError,
  type Service,
  type TokenInfo,
} from '../extract/index.ts'
import type { RunObserver } from './setting/observer.ts'

export type ServiceCallOptions = {
  readonly clock: Clock
  readonly readSecret: (name: string) => Promise<string | null>
  /** Ends waits and requests alike. */
  readonly stop: AbortSignal
  readonly log: RunObserver['log']
}

/**
 * Fetches threat-flow reports one after the other; these cost no searches.
 * @throws ExportError naming the report that could not be had
 */
export async function* fetchReports(
  settings: ServiceSettings,
  ids: readonly number[],
  options: ServiceCallOptions,
): AsyncGenerator<Report> {
  const service = openCalls(settings, options)
  try {
    for (const id of ids) yield await fetchReport(service, id)
  } finally {
    await service.close()
  }
}

export type TokenTest = {
  readonly url: string
  /** null: the service has no such test. */
  readonly info: TokenInfo | null
}

/** Whether anything is at the address of searches; `unknown`: the response to a GET does not tell. */
export type SearchPath = { readonly url: string; readonly found: 'yes' | 'no' | 'unknown' }

/**
 * Asks the service, once and free of charge, whom the token belongs to: where the settings say, or else at the
 * address of the public API, which not every service has.
 * @throws ExportError `credentials` when it belongs to nobody
 */
export function testToken(settings: ServiceSettings, options: ServiceCallOptions): Promise<TokenTest> {
  return requestedOnce(settings, options, (service) => tokenTest(service, settings))
}

/**
 * The same, and whether anything is at the address of searches. Sends no search.
 * @throws ExportError `credentials` when the token belongs to nobody
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

/** What the response to a GET says of an address that takes POST alone. */
function foundBy(status: number): SearchPath['found'] {
  if (status === 404) return 'no'
  return THERE.has(status) ? 'yes' : 'unknown'
}

const THERE: ReadonlySet<number> = new Set([400, 401, 405, 415, 422])

async function tokenTest(service: Service, settings: ServiceSettings): Promise<TokenTest> {
  const configured = settings.tokenTestUrl
  const url = configured ?? new URL(PUBLIC_TOKEN_TEST, settings.baseUrl).href
  try {
    const info = await service.testToken(url)
    if (info !== null || configured === null) return { url, info }
    throw new ExportError(
      'data',
      'The answer to the token test is no JSON',
      url,
      'Check service.token_test_url.',
    )
  } catch (error) {
    // Of an address that nobody configured only a refused token says something.
    if (configured === null && error instanceof ResponseError && error.status !== 401)
      return { url, info: null }
    throw error
  }
}

async function requestedOnce<T>(
  settings: ServiceSettings,
  options: ServiceCallOptions,
  request: (service: Service) => Promise<T>,
): Promise<T> {
  // No retries: the caller needs the present state.
  const service = openCalls({ ...settings, retries: 0 }, options)
  try {
    return await request(service)
  } finally {
    await service.close()
  }
}

/** On the host of the base URL. Source: public API documentation. */
const PUBLIC_TOKEN_TEST = '/tokens/test'

function openCalls(settings: ServiceSettings, { clock, readSecret, stop, log }: ServiceCallOptions) {
  return openService(
    settings,
    { maxRequests: null, minSearchesRemaining: null, monthly: null, connections: 1 },
    { clock, readSecret, stop, abort: stop, log, buffers: bufferPool(1) },
  )
}
