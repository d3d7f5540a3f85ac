import type { ServiceSettings } from '../core/index.ts'
import { type CallDeps, isWebPage, ResponseError, Service, type TokenInfo } from '../extract/index.ts'

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

/** Whose the token is, free of charge, at the configured or the public address. @throws ExportError `credentials` */
export function testToken(settings: ServiceSettings, deps: CallDeps): Promise<TokenTest> {
  return requestedOnce(settings, deps, (service) => tokenTest(service, settings))
}

/** Tests the token and the search path; sends no search. @throws ExportError `credentials`: the token is rejected */
export function testService(
  settings: ServiceSettings,
  deps: CallDeps,
): Promise<{ readonly token: TokenTest; readonly search: SearchPath }> {
  return requestedOnce(settings, deps, async (service) => {
    const token = await tokenTest(service, settings)
    const { origin, pathname } = service.endpoints.search
    const found = foundBy(await service.probeSearch())
    return { token, search: { url: `${origin}${pathname}`, found } }
  })
}

/** The meaning of a GET's response from an address that accepts only POST. */
function foundBy(status: number | null): SearchPath['found'] {
  if (status === null) return 'unknown'
  if (status === 404) return 'no'
  if (status < 400) return status < 300 ? 'web page' : 'redirect'
  return THERE.has(status) ? 'yes' : 'unknown'
}

const THERE: ReadonlySet<number> = new Set([400, 401, 405, 415, 422])

/** @param retries default: those of the service @throws ExportError as {@link testToken} */
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
  deps: CallDeps,
  request: (service: Service) => Promise<T>,
): Promise<T> {
  // No retries: the caller needs the current state.
  const service = Service.forCalls({ ...settings, retries: 0 }, deps)
  try {
    return await request(service)
  } finally {
    await service.close()
  }
}
