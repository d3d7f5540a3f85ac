/** A random number generator. The same seed gives the same numbers. */
export function random(seed) {
  let state = seed >>> 0
  const next = () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    integer: (from, to) => from + Math.floor(next() * (to - from + 1)),
    chance: (share) => next() < share,
    pick: (list) => list[Math.floor(next() * list.length)],
  }
}

const DOMAINS = ['scatterholt.com', 'quillmere.net', 'acme.example']
const OUTPUTS = [
  'format: parquet',
  'format: parquet, compression: gzip',
  'format: parquet, engine: parquetjs-lite',
  'format: csv',
  'format: csv, compression: gzip',
  'format: csv, engine: csv-stringify',
]

/** A random data set of the service, and a random pipeline that exports it. */
export function scenario(rng) {
  const domains = DOMAINS.slice(0, rng.integer(1, 3))
  const windows = rng.pick([null, 'month', '45d', 'week'])
  const settings = {
    output: rng.pick(OUTPUTS),
    partitionBy: rng.pick(['[query, window]', 'query', 'window', 'none']),
    secret: rng.pick(['redact', 'drop', 'partial', 'hmac']),
    order: rng.pick(['asc', 'desc']),
    auth: rng.pick(['token', 'api-key']),
    concurrency: rng.integer(1, 4),
  }
  const range = windows === null ? null : { from: '2024-03-01', until: '2024-06-20' }
  const yaml = `
name: soak
service:
  base_url: \${SPILLWAY_BASE_URL}
  requests_per_second: 1000
  basic_requests_per_second: 1000
  timeout: 4s
  retries: 3
${settings.auth === 'api-key' ? '  api_key_env: SPILLWAY_API_KEY\n  token_url: /tokens/generate\n' : ''}
extract:
  domains: [${domains.join(', ')}]
${range === null ? '' : `  windows: { from: ${range.from}, until: ${range.until}, every: ${windows} }`}
  order: ${settings.order}
  page_size: ${rng.integer(5, 60)}
  concurrency: ${settings.concurrency}
  max_requests: none
  min_searches_remaining: 1
transform: { secret: ${settings.secret}, max_quarantined: 100% }
load: { path: out, ${settings.output}, partition_by: ${settings.partitionBy}, shard_rows: ${rng.integer(20, 300)} }
`
  const data = {
    records: rng.integer(40, 300),
    seed: rng.integer(1, 1e9),
    domains: DOMAINS,
    requestsPerSecond: 0,
    basicRequestsPerSecond: 0,
    invalidRate: rng.pick([0, 0, 0.02]),
    emptyPageRate: rng.pick([0, 0.1]),
    shortPageRate: rng.pick([0, 0.1]),
    lastNext: rng.pick(['null', 'missing']),
    gzip: rng.chance(0.5),
    unknownFields: rng.chance(0.3),
    latencyMs: [0, rng.integer(0, 15)],
  }
  return { domains, range, settings, yaml, data }
}

const EFFECTS = [
  { kind: 'reset' },
  { kind: 'reset-mid-body' },
  { kind: 'truncate' },
  { kind: 'wrong-content-length' },
  { kind: 'html' },
  { kind: 'invalid-json' },
  { kind: 'wrong-shape' },
  { kind: 'status', status: 500 },
  { kind: 'status', status: 503 },
  { kind: 'status', status: 429, retryAfter: '1' },
]

/** Random faults of the network and the service during one run. */
export function networkFaults(rng, { auth }) {
  const faults = []
  for (let i = rng.integer(0, 3); i > 0; i--) {
    faults.push({ ...rng.pick(EFFECTS), rate: 0.03 + rng.next() * 0.2, times: rng.integer(1, 4) })
  }
  if (rng.chance(0.1)) faults.push({ kind: rng.pick(['stall', 'hang']), rate: 0.1, times: 1 })
  if (auth === 'api-key' && rng.chance(0.4)) faults.push({ kind: 'revoke-tokens', rate: 0.2, times: 1 })
  return faults
}

/** A random disturbance of one run; null: none. */
export function randomDisturbance(rng) {
  const at = rng.integer(1, 25)
  return rng.pick([
    null,
    { kind: 'SIGKILL', at },
    { kind: 'SIGKILL', at },
    { kind: 'SIGINT', at },
    { kind: 'SIGTERM', at },
    { kind: 'SIGINT twice', at },
    { kind: 'disk', fault: `${rng.pick(['kill', 'after', 'torn', 'full'])}:${rng.integer(1, 200)}` },
    { kind: 'disk', fault: `full:${rng.integer(1, 200)}` },
    { kind: 'budget', requests: at },
    { kind: 'quota', requests: at },
    { kind: 'other cursors' },
  ])
}
