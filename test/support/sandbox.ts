import type { Credentials, IncludeValue } from '../../src/sandbox/data/credentials.ts'
import { parseTimestamp } from '../../src/sandbox/data/timeline.ts'
import { fraction } from '../../src/sandbox/data/words.ts'
import type { LoggedRequest } from '../../src/sandbox/http/routes.ts'
import { type SandboxOptions as Options, resolveOptions, type Settings } from '../../src/sandbox/options.ts'
import { importOrder, type Order } from '../../src/sandbox/search/feed.ts'
import { indexRange, type SearchQuery, select } from '../../src/sandbox/search/selection.ts'
import { makeService, type Sandbox as Served, serve } from '../../src/sandbox/start-sandbox.ts'
import { atTheEnd } from './at-the-end.ts'
import { type Fault, faulty } from './sandbox-faults.ts'

export { COMMON_PASSWORDS, DEMO_DOMAINS } from '../../src/sandbox/data/words.ts'
export type { LoggedRequest } from '../../src/sandbox/http/routes.ts'
export type { SearchQuery } from '../../src/sandbox/search/selection.ts'
export type { Fault, FaultEffect } from './sandbox-faults.ts'

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
      const asked = ignoreFilters ? { ...(body as object), filters: null } : body
      const found = service.search.respond(asked, endpoint)
      const { items, next } = found.body
      return lastNext === 'missing' && next === null
        ? { ...found, body: { items } as unknown as typeof found.body }
        : found
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

const [LATE, LATE_BY] = [601, 602]
const MAX_LATE_MICROS = 45 * 86_400_000_000

/** The order of feeds, where this share of credentials comes up to 45 days after its import. */
function lateOrder(lateRate: number, settings: Settings, data: Credentials): Order {
  const { seed } = settings
  const { comesAt: importedAt, sequence } = importOrder(settings, data)
  const comesAt = (position: number): number =>
    fraction(seed, position, LATE) < lateRate
      ? importedAt(position) + Math.floor(fraction(seed, position, LATE_BY) * MAX_LATE_MICROS)
      : importedAt(position)
  const orders = new Map<number | null, Uint32Array>()
  return {
    comesAt,
    sequence(identifier) {
      let order = orders.get(identifier)
      if (order === undefined) {
        const { length, at } = sequence(identifier)
        order = Uint32Array.from({ length }, (_, index) => at(index))
        const times = new Map(Array.from(order, (position) => [position, comesAt(position)]))
        order.sort((a, b) => times.get(a)! - times.get(b)! || a - b)
        orders.set(identifier, order)
      }
      return { length: order.length, at: (index) => order[index]! }
    },
  }
}

/** A query over `[from, until)`, as a pipeline's window has it; an end left out is open. */
export type ExpectedSearch = {
  query: SearchQuery
  from?: string
  until?: string
  include?: readonly string[]
}

/**
 * Yields what matches, oldest first, one record at a time.
 * @throws Error when an end of the range is no ISO 8601 date-time
 */
function* expectedCredentials(data: Credentials, search: ExpectedSearch): Generator<CredentialJson> {
  const selection = select(data, search.query)
  const gte = search.from === undefined ? null : bound(search.from)
  const lte = search.until === undefined ? null : bound(search.until) - 1
  const { low, high } = indexRange(data, selection, { gte, lte })
  const include = (search.include ?? []) as readonly IncludeValue[]
  for (let index = low; index < high; index++) {
    const position = selection.positionAt(index)
    if (selection.matches === null || selection.matches(position))
      yield JSON.parse(JSON.stringify(data.item(position, include))) as CredentialJson
  }
}

function bound(text: string): number {
  const micros = parseTimestamp(text, 'up')
  if (micros === null) throw new Error('from and until must be ISO 8601 date-times')
  return micros
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

/** A credential as it comes over the wire. Source: spec 2.2 and 2.3, nullability as publicly documented. */
export type CredentialJson = {
  id: number
  domain: string | null
  identity_name: string
  hash: string | null
  hash_type: string | null
  imported_at: string
  known_password_id?: number | null
  auth_domains?: string[]
  urls?: string[]
  credential_hash?: string
  event_uid?: string | null
  source_id: string
  source: SourceJson | null
}

type SourceJson = {
  id: string
  name: string | null
  description_en: string | null
  description_fr: string | null
  is_alert_enabled: boolean
  breached_at: string | null
  leaked_at: string | null
  url?: string | null
  pii_tags?: string[] | null
}

/** A credential as it comes from a feed. Source: the public documentation. */
export type FeedItem = Omit<CredentialJson, 'hash_type' | 'source'> & {
  source: Omit<NonNullable<CredentialJson['source']>, 'is_alert_enabled'> | null
  remediated_at: string | null
  ignored_at: string | null
}
