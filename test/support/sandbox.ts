import type { LoggedRequest } from '../../src/sandbox/http/routes.ts'
import { type SandboxOptions as Options, resolveOptions } from '../../src/sandbox/options.ts'
import { importOrder } from '../../src/sandbox/search/feed.ts'
import { makeService, type Sandbox as Served, serve } from '../../src/sandbox/start-sandbox.ts'
import { atTheEnd } from './at-the-end.ts'
import { type Fault, faulty } from './sandbox-faults.ts'
import type { CredentialJson, FeedItem } from './sandbox-items.ts'
import { type ExpectedSearch, expectedCredentials } from './sandbox-oracle.ts'
import { lateOrder } from './sandbox-order.ts'

export { COMMON_PASSWORDS, DEMO_DOMAINS } from '../../src/sandbox/data/words.ts'
export type { LoggedRequest } from '../../src/sandbox/http/routes.ts'
export type { SearchQuery } from '../../src/sandbox/search/selection.ts'
export type { Fault, FaultEffect } from './sandbox-faults.ts'
export type { CredentialJson, FeedItem } from './sandbox-items.ts'
export type { ExpectedSearch } from './sandbox-oracle.ts'

export type SandboxOptions = Options & {
  readonly faults?: readonly Fault[] | undefined
  /** Share of credentials that the feeds get up to 45 days after their import. */
  readonly lateRate?: number | undefined
  /** A broken service, whose searches have no filters. */
  readonly ignoreFilters?: boolean | undefined
  /** How the last page of a search says that it is the last. */
  readonly lastNext?: 'null' | 'missing' | undefined
}

export type Sandbox = Served & {
  /**
   * The credentials that a complete and correct export of a search holds, oldest first, straight from the generator.
   * Broken ones (`invalidRate`) come as broken as on the wire.
   */
  expected(search: ExpectedSearch): Iterable<CredentialJson>
  /** What a feed has had so far, in the order in which it came; null: the tenant's. */
  expectedFeed(identifier: number | null): Iterable<FeedItem>
}

/**
 * The sandbox, with faults of the network and the service, and with the rows that an export of it should have. It is
 * closed when the tests of the file are done, if not before. Without options it has no rate limits.
 */
export async function startSandbox({
  faults = [],
  lateRate = 0,
  ignoreFilters = false,
  lastNext = 'null',
  ...options
}: SandboxOptions = {}): Promise<Sandbox> {
  const settings = resolveOptions({ requestsPerSecond: 0, basicRequestsPerSecond: 0, ...options })
  const order: typeof importOrder = (...given) => lateOrder(lateRate, ...given)
  const { data, arrived, service } = makeService(settings, lateRate > 0 ? order : importOrder)
  const search: typeof service.search = {
    ...service.search,
    respond(body, endpoint) {
      const found = service.search.respond(
        ignoreFilters ? { ...(body as object), filters: null } : body,
        endpoint,
      )
      return lastNext === 'missing' ? { ...found, body: withoutNull(found.body) } : found
    },
  }
  const sandbox = await serve(settings, { ...service, search }, faulty(faults, settings.seed))
  atTheEnd(sandbox.close)
  return {
    ...sandbox,
    expected: (search) => expectedCredentials(data, search),
    *expectedFeed(identifier) {
      const { length, at } = arrived.soFar(identifier)
      for (let i = 0; i < length; i++) yield arrived.item(at(i)) as FeedItem
    },
  }
}

const NULL_NEXT = ',"next":null}'

function withoutNull(page: Buffer): Buffer {
  const end = page.length - NULL_NEXT.length
  return page.subarray(end).toString() === NULL_NEXT
    ? Buffer.concat([page.subarray(0, end), Buffer.from('}')])
    : page
}

/** Requests that cost: without tests of the token. */
export function searchesOf(requests: readonly LoggedRequest[]): readonly LoggedRequest[] {
  return requests.filter(({ kind }) => kind === 'search')
}

/**
 * The number of searches that repeat an earlier one. Their total is not exact: where pages are slower than the rate limit,
 * a chain may hand windows to an idle slot, which costs one search more.
 */
export function repeatedSearches(requests: readonly LoggedRequest[]): number {
  const seen = new Set<string>()
  let repeated = 0
  for (const { kind, body } of requests) {
    if (kind !== 'search') continue
    const search = JSON.stringify(body)
    if (seen.has(search)) repeated++
    seen.add(search)
  }
  return repeated
}
