import { expect, test } from 'vitest'
import { failure, problems, read, SMALLEST, withLine } from './pipeline-file.ts'

const GENERATE = 'https://api.example.com/tokens/generate'
const CSV = 'format: csv, engine: csv-stringify, compression: gzip'
const UNTIL_NOW = { from: 1_704_067_200_000_000, until: 'now', every: null, lagMs: 900_000, perChain: null }
const DEV = 'http://127.0.0.1:10000/dev'
const AT_DEV = expect.stringMatching(`^${DEV}`)
const IN_AZURE = { kind: 'azure', container: 'leaks', prefix: 'team/acme', endpoint: AT_DEV }
const IN_CSV = { kind: 'csv', engine: 'csv-stringify', compression: 'gzip' }

test('the smallest file gets every default', async () => {
  const pipeline = await read(SMALLEST)
  expect(pipeline).toEqual({
    name: 'acme',
    file: 'p.yaml',
    locations: {
      name: 'p.yaml:1:1',
      service: 'p.yaml:2:1',
      'service.base_url': 'p.yaml:3:3',
      extract: 'p.yaml:4:1',
      'extract.domains': 'p.yaml:5:3',
    },
    secretKeys: {},
    service: {
      baseUrl: 'https://api.example.com/firework',
      auth: { kind: 'token', secretIn: 'SPILLWAY_TOKEN' },
      addresses: {
        search_path: '/v4/credentials/global/_search',
        report_path: '/v4/threat_flow/reports',
        feed_path: '/v2/me/feed/credentials',
        identifier_feed_path: '/v3/identifiers/{id}/feed/credentials',
      },
      organization: null,
      ...{ requestsPerSecond: 1, basicRequestsPerSecond: 4, rowsPerSearch: 100 },
      ...{ timeoutMs: 60_000, retries: 8, maxResponseBytes: 256_000_000 },
    },
    extract: {
      resource: 'credentials',
      queries: [{ type: 'domain', fqdn: 'acme.com' }],
      ...{ windows: null, unfiltered: null, order: 'asc', pageSize: 10_000, include: [] },
      ...{ concurrency: 4, maxRequests: 500, minSearchesRemaining: 100, monthlySearches: null },
    },
    transform: {
      ...{ secret: 'redact', identity: 'keep', maskKeyEnv: 'SPILLWAY_MASK_KEY' },
      columns: [
        ...['id', 'domain', 'identity_name', 'hash', 'hash_type', 'imported_at', 'source_id'],
        ...['source_name', 'source_description_en', 'source_description_fr', 'source_is_alert_enabled'],
        ...['source_breached_at', 'source_leaked_at', 'query_type', 'query_value'],
      ],
      ...{ extraColumns: [], lacking: [], secretFacts: null, onInvalid: 'quarantine' },
      maxQuarantined: { kind: 'share', percent: 1 },
    },
    load: {
      path: expect.stringMatching(/\/output\/acme$/),
      pathAsGiven: 'output/acme',
      location: { kind: 'disk', root: expect.stringMatching(/\/output\/acme$/) },
      format: { kind: 'parquet', engine: 'columnar', compression: 'snappy', encodings: 'compact' },
      partitionBy: ['query', 'window'],
      shardRows: 1_000_000,
      tables: { formats: [], root: expect.stringMatching(/^file:\/\/\/.*\/output\/acme$/), snapshots: 10 },
      ...{ keep: null, catalog: null, fileMode: 0o600, dirMode: 0o700 },
    },
  })
})

test('reports have ten to a page and are requested by id, each once', async () => {
  const { extract, transform } = await read(
    SMALLEST.replace('domains: [acme.com]', 'resource: reports\n  ids: [7, 8, 7]'),
  )
  expect(extract.pageSize).toBe(10)
  expect(extract.queries).toEqual([
    { type: 'report', id: 7 },
    { type: 'report', id: 8 },
  ])
  expect(transform.columns).toContain('title')
  const all = await read(SMALLEST.replace('domains: [acme.com]', 'resource: reports\n  all: true'))
  expect(all.extract.queries).toEqual([{ type: 'reports' }])
})

test.each([
  ['https://API.example.com/firework///', 'https://api.example.com/firework'],
  ['https://api.example.com', 'https://api.example.com'],
  ['http://localhost:8080/x/', 'http://localhost:8080/x'],
  ['"http://[::1]:80/x"', 'http://[::1]/x'],
  ['http://api.example.com\n  allow_http: true', 'http://api.example.com'],
])('base_url %s is %s', async (given, expected) => {
  const { service } = await read(SMALLEST.replace('https://api.example.com/firework', given))
  expect(service.baseUrl).toBe(expected)
})

test.each<[line: string, path: string, value: unknown]>([
  ['windows: { from: 2024-01-01T02:00:00+02:00 }', 'extract.windows', UNTIL_NOW],
  ['windows: { from: 2024-01-01, every: 6h }', 'extract.windows.every', { unit: 'hour', count: 6 }],
  ['windows: { from: 2024-01-01, every: month }', 'extract.windows.every', { unit: 'month' }],
  ['search_path: https://a.test/_search', 'service.addresses.search_path', 'https://a.test/_search'],
  ['report_path: /v5/reports', 'service.addresses.report_path', '/v5/reports'],
  ['api_key_env: K', 'service.auth', { kind: 'api-key', secretIn: 'K', tokenUrl: GENERATE, tenantId: null }],
  ['timeout: 500ms', 'service.timeoutMs', 500],
  ['timeout: 15m', 'service.timeoutMs', 900_000],
  ['requests_per_second: 0.25', 'service.requestsPerSecond', 0.25],
  ['max_response_bytes: 64MB', 'service.maxResponseBytes', 64_000_000],
  ['max_response_bytes: 64MiB', 'service.maxResponseBytes', 64 * 1024 * 1024],
  ['max_quarantined: 0', 'transform.maxQuarantined', { kind: 'count', items: 0 }],
  ['max_quarantined: 0.25%', 'transform.maxQuarantined', { kind: 'share', percent: 0.25 }],
  ['max_quarantined: ${LIMIT}', 'transform.maxQuarantined', { kind: 'count', items: 7 }],
  ['max_quarantined: ${SHARE}', 'transform.maxQuarantined', { kind: 'share', percent: 7 }],
  ['parquet: { encodings: plain }', 'load.format.encodings', 'plain'],
  ['engine: parquetjs-lite', 'load.format.encodings', 'plain'],
  [`{ ${CSV}, csv: { escape_formulas: true } }`, 'load.format', { ...IN_CSV, escapeFormulas: true }],
  ['partition_by: query', 'load.partitionBy', ['query']],
  ['partition_by: none', 'load.partitionBy', []],
  ['partition_by: [window, query, window]', 'load.partitionBy', ['query', 'window']],
  [`{ path: 'az://leaks/team/acme/', azure: { endpoint: '${DEV}' } }`, 'load.path', 'az://leaks/team/acme'],
  [`{ path: 'az://leaks/team/acme/', azure: { endpoint: '${DEV}' } }`, 'load.location', IN_AZURE],
  [
    `{ path: 's3://lake/a', s3: { endpoint: 'http://a.test', allow_http: true } }`,
    'load.location.allowHttp',
    true,
  ],
  [`{ path: 's3://lake/a', s3: { endpoint: 'http://127.0.0.1:9000' } }`, 'load.location.allowHttp', false],
  // Octal in any notation.
  ["file_mode: '0640'", 'load', expect.objectContaining({ fileMode: 0o640, dirMode: 0o750 })],
  ['file_mode: 0640', 'load', expect.objectContaining({ fileMode: 0o640, dirMode: 0o750 })],
  ['file_mode: 0o644', 'load', expect.objectContaining({ fileMode: 0o644, dirMode: 0o755 })],
])('%s: %s', async (line, path, value) => {
  const text = withLine(path.split('.')[0] as 'load', line)
  expect(await read(text, { env: { LIMIT: '7', SHARE: '7%' } })).toHaveProperty(path, value)
})

test.each([
  ['none', [null, null, null]],
  ['', [500, null, 100]],
  ['${BLANK:-}', [500, null, 100]],
  ['7', [7, 7, 7]],
])('limits that are "%s"', async (value, expected) => {
  const keys = ['max_requests', 'monthly_searches', 'min_searches_remaining']
  const lines = keys.map((key) => `${key}: ${value}`).join('\n  ')
  const { extract } = await read(withLine('extract', lines), { env: { BLANK: '' } })
  expect([extract.maxRequests, extract.monthlySearches, extract.minSearchesRemaining]).toEqual(expected)
})

test('a scheme in capitals and the line ends of Windows in variables', async () => {
  const at = async (url: string) =>
    (await read(SMALLEST.replace(/https:\S+/, '${URL}'), { env: { URL: url } })).service
  expect((await at('HTTPS://api.example.com/firework\r')).baseUrl).toBe('https://api.example.com/firework')
  await expect(at('HTTP://api.example.com/x')).rejects.toThrow(
    'expected https, found http to another machine',
  )
  const feed = withLine('service', 'identifier_feed_path: HTTP://api.example.com/{id}')
  await expect(read(feed)).rejects.toThrow('expected https, found http to another machine')
})

test.each([
  ['table_location: s3://lake/acme', 'table_location: goes with table_formats'],
  ['table_snapshots: 3', 'table_snapshots: goes with table_formats'],
  ['table_location: s3://user:password@host/x', 'without a password'],
])('load: { %s }, which no table can have, is refused', async (line, message) => {
  expect(await problems(withLine('load', line))).toEqual([expect.stringContaining(message)])
})

test.each(['format: csv', 'engine: parquetjs-lite'])(
  'no table can be over files with %s',
  async (setting) => {
    expect(await problems(withLine('load', `${setting}\n  table_formats: [iceberg, delta]`))).toEqual([
      'p.yaml:8:3: load.table_formats: goes with format: parquet and engine: columnar',
    ])
  },
)

test('searches are not counted where none are made, and no quarantine is limited where none is', async () => {
  const reports = SMALLEST.replace(
    'domains: [acme.com]',
    'resource: reports\n  all: true\n  min_searches_remaining: 5',
  )
  expect(await problems(reports)).toEqual([
    'p.yaml:7:3: extract.min_searches_remaining: does not go with resource: reports',
  ])
  expect(await problems(withLine('transform', 'on_invalid: fail\n  max_quarantined: 5'))).toEqual([
    expect.stringContaining('max_quarantined: goes with on_invalid: quarantine'),
  ])
})

test('columns are in output order, without those that a policy drops', async () => {
  const named = await read(withLine('transform', 'columns: [query_value, id, domain, id]'))
  expect(named.transform.columns).toEqual(['id', 'domain', 'query_value'])
  const dropped = await read(withLine('transform', 'secret: drop\n  identity: drop'))
  expect(dropped.transform.columns).not.toContain('hash')
  expect(dropped.transform.columns).not.toContain('identity_name')
  const included = await read(withLine('extract', 'include: [urls, known_password_id]'))
  expect(included.transform.columns.slice(6, 7)).toEqual(['known_password_id'])
  expect(included.transform.columns.at(-1)).toBe('urls')
})

test('zstd is refused where Node.js lacks it', async () => {
  const reading = read(withLine('load', 'compression: zstd'))
  const [, major = 0, minor = 0] = /^v(\d+)\.(\d+)/.exec(process.version)!.map(Number)
  const works = major >= 24 || (major === 23 && minor >= 8) || (major === 22 && minor >= 15)
  if (works) expect((await reading).load.format.compression).toBe('zstd')
  else expect((await failure(reading)).message).toContain('zstd needs Node 22.15 or newer')
})
