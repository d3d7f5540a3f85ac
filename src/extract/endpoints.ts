import {
  type AddressKey,
  type Clock,
  ExportError,
  getOrInsert,
  isSecondSearch,
  type ServiceSettings,
} from '../core/index.ts'
import { type RateLimit, rateLimit } from './pace/rate-limit.ts'

export type Endpoints = {
  readonly search: URL
  readonly reports: URL
  /** @param id of an identifier, where the address has one */
  readonly feed: (key: AddressKey, id: number | null) => URL
}

/** Each tier has its own rate limit; everything but searches and feeds shares one. */
export type Tier = 'search' | 'basic' | 'feed'

/** @throws ExportError `config` when an address is no URL */
export function endpointsOf({ baseUrl, addresses }: ServiceSettings): Endpoints {
  return {
    search: endpoint(baseUrl, addresses.search_path),
    reports: endpoint(baseUrl, addresses.report_path),
    feed: (key, id) => endpoint(baseUrl, addresses[key].replaceAll('{id}', String(id))),
  }
}

type RateLimits = Readonly<Record<Tier, RateLimit>>

/** By address, token and pace. They outlive a run: the next pipeline of the process may be the same organization's. */
const known = new WeakMap<Clock, Map<string, RateLimits>>()

/** The rate limits of the tiers. */
export function rateLimits(settings: ServiceSettings, endpoints: Endpoints, clock: Clock): RateLimits {
  const { baseUrl, auth, requestsPerSecond, basicRequestsPerSecond } = settings
  const { pathname } = endpoints.search
  const key = JSON.stringify([baseUrl, auth.secretIn, requestsPerSecond, basicRequestsPerSecond, pathname])
  if (!known.has(clock)) known.set(clock, new Map())
  return getOrInsert(known.get(clock)!, key, () => newRateLimits(settings, endpoints, clock))
}

/** The tier of the feeds is not known, so they have a limit of their own. */
function newRateLimits(
  { requestsPerSecond, basicRequestsPerSecond }: ServiceSettings,
  endpoints: Endpoints,
  clock: Clock,
): RateLimits {
  // The rate limit of the second search is not known: sources name four requests a second, and one.
  const slowest = isSecondSearch(endpoints.search.pathname) ? { slowestPerSecond: 1 } : {}
  return {
    search: rateLimit({ requestsPerSecond, clock, ...slowest }),
    basic: rateLimit({ requestsPerSecond: basicRequestsPerSecond, clock }),
    feed: rateLimit({ requestsPerSecond, slowestPerSecond: requestsPerSecond / 8, clock }),
  }
}

/** @param pathOrUrl absolute, or a path below the base @throws ExportError `config` when it is no URL */
export function endpoint(baseUrl: string, pathOrUrl: string): URL {
  const text = /^https?:\/\//i.test(pathOrUrl)
    ? pathOrUrl
    : `${baseUrl.replace(/\/+$/, '')}/${pathOrUrl.replace(/^\/+/, '')}`
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && /^https?:$/.test(url.protocol)) return url
  throw new ExportError({
    kind: 'config',
    what: "The service's address is no http or https URL",
    where: 'service',
    next: 'Correct service.base_url or the path.',
  })
}

/** Names a request in messages. Without the query string: cursors are long and unreadable. */
export function whereOf(method: string, url: URL, about: string): string {
  return `${method} ${url.origin}${url.pathname}, ${about}`
}
