import {
  type NamedPipeline,
  type NamedQuery,
  nameQuery,
  type Order,
  type PartitionBy,
  type Window,
  type WindowSettings,
  windowRange,
} from '../../src/core/index.ts'
import type { Begun, BegunChain } from '../../src/plan/index.ts'

export type Wanted = {
  readonly queries?: readonly NamedQuery[]
  /** Without `perChain`: null. */
  readonly windows?: (Omit<WindowSettings, 'perChain'> & Partial<WindowSettings>) | null
  readonly partitionBy?: readonly PartitionBy[]
  readonly order?: Order
}

/** A pipeline with these queries and windows; everything else is minimal. */
export function pipelineOf({
  queries = [domain('acme.com')],
  windows = null,
  partitionBy = ['query', 'window'],
  order = 'asc',
}: Wanted): NamedPipeline {
  return {
    name: 'acme',
    file: 'acme.yaml',
    locations: {},
    secretKeys: {},
    service: {
      baseUrl: 'http://127.0.0.1:1/firework',
      auth: { kind: 'token', tokenEnv: 'SPILLWAY_TOKEN' },
      addresses: {
        search_path: '/v4/credentials/global/_search',
        report_path: '/v4/threat_flow/reports',
        feed_path: '/v2/me/feed/credentials',
        identifier_feed_path: '/v3/identifiers/{id}/feed/credentials',
      },
      tokenTestUrl: null,
      organization: null,
      requestsPerSecond: 1,
      basicRequestsPerSecond: 4,
      timeoutMs: 60_000,
      retries: 8,
      maxResponseBytes: 1 << 28,
    },
    extract: {
      resource: 'credentials',
      queries,
      windows: windows === null ? null : { perChain: null, ...windows },
      unfiltered: null,
      order,
      pageSize: 10_000,
      include: [],
      concurrency: 4,
      maxRequests: null,
      minSearchesRemaining: null,
      monthlySearches: null,
    },
    transform: {
      extraColumns: [],
      secret: 'redact',
      identity: 'keep',
      maskKeyEnv: 'SPILLWAY_MASK_KEY',
      columns: ['id', 'imported_at', 'hash'],
      onInvalid: 'quarantine',
      maxQuarantined: { kind: 'share', percent: 1 },
    },
    load: {
      path: '/nowhere',
      location: { kind: 'disk', root: '/nowhere' },
      pathAsGiven: '/nowhere',
      format: {
        kind: 'parquet',
        engine: 'columnar',
        compression: 'snappy',
        encodings: 'compact',
        bloomFilters: [],
      },
      partitionBy,
      keep: null,
      shardRows: 1_000_000,
      tables: { formats: [], root: 'file:///nowhere', snapshots: 10 },
      fileMode: 0o600,
      dirMode: 0o700,
    },
  }
}

export function domain(fqdn: string): NamedQuery {
  return nameQuery({ type: 'domain', fqdn }, fqdn)
}

export type BegunWindow = { readonly window: Window | null; readonly done: boolean }

/** The state of a query as a plan reads it. */
export function begunOf(windows: readonly BegunWindow[], chains: readonly BegunChain[] = []): Begun {
  return { windows: new Map(windows.map(({ window, done }) => [windowRange(window), { done }])), chains }
}
