import type { PartitionBy, Pipeline, Query, WindowSettings } from '../../src/core/index.ts'

export type Wanted = {
  readonly queries?: readonly Query[]
  readonly windows?: WindowSettings | null
  readonly partitionBy?: readonly PartitionBy[]
}

/** A pipeline that asks for these queries and windows; everything else as plain as can be. */
export function pipelineOf({
  queries = [domain('acme.com')],
  windows = null,
  partitionBy = ['query', 'window'],
}: Wanted): Pipeline {
  return {
    name: 'acme',
    file: 'acme.yaml',
    service: {
      baseUrl: 'http://127.0.0.1:1/firework',
      auth: { kind: 'token', tokenEnv: 'SPILLWAY_TOKEN' },
      searchPath: '/v4/credentials/global/_search',
      reportPath: '/v4/threat_flow/reports',
      tokenTestUrl: null,
      requestsPerSecond: 1,
      basicRequestsPerSecond: 4,
      timeoutMs: 60_000,
      retries: 8,
      maxResponseBytes: 1 << 28,
    },
    extract: {
      resource: 'credentials',
      queries,
      windows,
      whole: null,
      order: 'asc',
      pageSize: 10_000,
      include: [],
      concurrency: 4,
      maxRequests: null,
      minSearchesRemaining: null,
    },
    transform: {
      secret: 'redact',
      identity: 'keep',
      maskKeyEnv: 'SPILLWAY_MASK_KEY',
      columns: ['id', 'imported_at', 'hash'],
      onInvalid: 'quarantine',
    },
    load: {
      path: '/nowhere',
      pathAsGiven: '/nowhere',
      format: {
        kind: 'parquet',
        engine: 'columnar',
        compression: 'snappy',
        encodings: 'compact',
        bloomFilters: [],
      },
      partitionBy,
      shardRows: 1_000_000,
      fileMode: 0o600,
      dirMode: 0o700,
    },
  }
}

export function domain(fqdn: string): Query {
  return { type: 'domain', fqdn }
}
