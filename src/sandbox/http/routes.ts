import type { Feed } from '../search/feed.ts'
import type { Reports } from '../search/reports.ts'
import type { Search } from '../search/search.ts'
import { serviceError } from '../search/service-error.ts'
import type { Tokens } from './tokens.ts'

export type Service = {
  readonly search: Search
  readonly reports: Reports
  readonly feed: Feed
  readonly tokens: Tokens
}

type Call = {
  readonly authorization: string | undefined
  readonly url: URL
  readonly body: unknown
  readonly logged: LoggedRequest
}

/** `body` is sent as JSON. */
export type Reply = { readonly body: unknown; readonly headers: Readonly<Record<string, string>> }

export type Route = {
  readonly kind: RequestKind
  /** Source: the public documentation: Search for global searches, Basic for everything else. */
  readonly tier: 'search' | 'basic'
  /** It takes no token: it gives one. */
  readonly isOpen?: true
  readonly method: 'GET' | 'POST'
  readonly pattern: RegExp
  /** @throws ServiceError */
  handle(service: Service, call: Call, match: RegExpExecArray): Reply
}

/** The segment of the base URL. */
export const PREFIX = '/firework'

const V4 = `^${PREFIX}/v4`

/** The endpoints. Source: spec 4 and the public documentation. */
const ROUTES: readonly Route[] = [
  {
    kind: 'search',
    tier: 'search',
    method: 'POST',
    pattern: new RegExp(`${V4}/credentials/global/_search$`),
    handle({ search }, { body, logged }) {
      const { body: page, batchReached } = search.respond(body, 'global')
      logged.items = page.items.length
      return { body: page, headers: quotaHeaders(search.remaining(), batchReached) }
    },
  },
  {
    kind: 'search',
    tier: 'basic',
    method: 'POST',
    pattern: /^\/astp\/v2\/credentials\/_search$/,
    handle({ search }, { body, logged }) {
      const { body: page } = search.respond(body, 'second')
      logged.items = page.items.length
      return plain(page)
    },
  },
  {
    kind: 'reports',
    tier: 'basic',
    method: 'GET',
    pattern: new RegExp(`${V4}/threat_flow/reports/?$`),
    handle: ({ reports }, { url }) => plain(reports.list(url.searchParams)),
  },
  {
    kind: 'reports',
    tier: 'basic',
    method: 'GET',
    pattern: new RegExp(`${V4}/threat_flow/reports/([^/]+)$`),
    handle: ({ reports }, _, match) => plain(reports.one(match[1]!)),
  },
  feedRoute(new RegExp(`^${PREFIX}/v2/me/feed/credentials$`)),
  feedRoute(new RegExp(`^${PREFIX}/v3/identifiers/([^/]+)/feed/credentials$`)),
  {
    kind: 'tokens',
    tier: 'basic',
    method: 'POST',
    isOpen: true,
    pattern: /^\/tokens\/generate$/,
    handle: ({ tokens }, { authorization, body }) => plain(tokens.exchange(authorization, body)),
  },
  {
    kind: 'tokens',
    tier: 'basic',
    method: 'GET',
    pattern: /^\/tokens\/test$/,
    handle: ({ tokens }) => plain(tokens.describe()),
  },
]

/** @param pattern with the identifier as its group; without one it is the feed of the tenant */
function feedRoute(pattern: RegExp): Route {
  return {
    kind: 'feed',
    tier: 'basic',
    method: 'GET',
    pattern,
    handle({ feed }, { url, logged }, match) {
      const page = feed.page(match[1] ?? null, url.searchParams)
      logged.items = page.items.length
      return plain(page)
    },
  }
}

/** @throws ServiceError 404 for an unknown path, 405 for a known one with another method */
export function findRoute(method: string, path: string): [Route, RegExpExecArray] {
  let known = false
  for (const route of ROUTES) {
    const match = route.pattern.exec(path)
    if (match && route.method === method) return [route, match]
    known ||= match !== null
  }
  throw known
    ? serviceError(405, 'METHOD_NOT_ALLOWED', 'method not allowed')
    : serviceError(404, 'NOT_FOUND', 'no such path')
}

/** Source: the public documentation: every response to a global search carries both. */
export function quotaHeaders(remaining: number, batchReached: boolean): Record<string, string> {
  return {
    'x-flare-global-searches-remaining': String(remaining),
    'x-flare-global-searches-batch-reached': String(batchReached),
  }
}

function plain(body: unknown): Reply {
  return { body, headers: {} }
}

/** Both search endpoints count as 'search'. */
export type RequestKind = 'search' | 'feed' | 'reports' | 'tokens' | 'other'

/** One request as the sandbox saw it. Headers are left out: they carry credentials. */
export type LoggedRequest = {
  /** Counted from 1 over all requests. */
  readonly number: number
  readonly kind: RequestKind
  /** Counted from 1 within the kind. */
  readonly ordinal: number
  readonly method: string
  /** With the query string. */
  readonly path: string
  /** The parsed JSON body, or undefined without one. */
  readonly body: unknown
  /** Milliseconds since 1970 at which the head of the request arrived. */
  readonly at: number
  /** The status sent; 0 while there is none, or where the fault sends none. */
  status: number
  /** Items in the response to a search, or of a feed. */
  items: number
  /** The kind of the fault that struck, if one did. */
  fault: string | null
  /** The request broke the rate limit of its tier, whatever the response was. */
  tooFast: boolean
}

export type RequestLog = {
  readonly entries: readonly LoggedRequest[]
  add(seen: { kind: RequestKind; method: string; path: string; body: unknown; at: number }): LoggedRequest
}

export function requestLog(): RequestLog {
  const entries: LoggedRequest[] = []
  const ordinals = new Map<RequestKind, number>()
  return {
    entries,
    add(seen) {
      const ordinal = (ordinals.get(seen.kind) ?? 0) + 1
      ordinals.set(seen.kind, ordinal)
      const unanswered = { status: 0, items: 0, fault: null, tooFast: false }
      const entry = { number: entries.length + 1, ordinal, ...seen, ...unanswered }
      entries.push(entry)
      return entry
    },
  }
}
