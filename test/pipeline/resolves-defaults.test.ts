// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pipeline files refer to variables that way
import { expect, test } from 'vitest'
import { failure, problems, read, SMALLEST, withLine } from './pipeline-file.ts'

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
      auth: { kind: 'token', tokenEnv: 'SPILLWAY_TOKEN' },
      addresses: {
        search_path: '/v4/credentials/global/_search',
        report_path: '/v4/threat_flow/reports',
        feed_path: '/v2/me/feed/credentials',
        identifier_feed_path: '/v3/identifiers/{id}/feed/credentials',
      },
      organization: null,
      requestsPerSecond: 1,
      basicRequestsPerSecond: 4,
      rowsPerSearch: 100,
      timeoutMs: 60_000,
      retries: 8,
      maxResponseBytes: 256_000_000,
    },
    extract: {
      resource: 'credentials',
      queries: [{ type: 'domain', fqdn: 'acme.com' }],
      windows: null,
      unfiltered: null,
      order: 'asc',
      pageSize: 10_000,
      include: [],
      concurrency: 4,
      maxRequests: 500,
      minSearchesRemaining: 100,
      monthlySearches: null,
    },
    transform: {
      secret: 'redact',
      identity: 'keep',
      maskKeyEnv: 'SPILLWAY_MASK_KEY',
      columns: [
        ...['id', 'domain', 'identity_name', 'hash', 'hash_type', 'imported_at', 'source_id'],
        ...['source_name', 'source_description_en', 'source_description_fr', 'source_is_alert_enabled'],
        ...['source_breached_at', 'source_leaked_at', 'query_type', 'query_value'],
      ],
      extraColumns: [],
      secretFacts: null,
      onInvalid: 'quarantine',
      maxQuarantined: { kind: 'share', percent: 1 },
    },
    load: {
      path: expect.stringMatching(/\/output\/acme$/),
      pathAsGiven: 'output/acme',
      location: { kind: 'disk', root: expect.stringMatching(/\/output\/acme$/) },
      format: {
        kind: 'parquet',
        engine: 'columnar',
        compression: 'snappy',
        encodings: 'compact',
      },
      partitionBy: ['query', 'window'],
      shardRows: 1_000_000,
      tables: { formats: [], root: expect.stringMatching(/^file:\/\/\/.*\/output\/acme$/), snapshots: 10 },
      keep: null,
      fileMode: 0o600,
      catalog: null,
      dirMode: 0o700,
    },
  })
})

test('encodings are compact by default, if the engine supports that', async () => {
  const encodings = async (load: string) => (await read(withLine('load', load))).load.format
  expect(await encodings('format: parquet')).toMatchObject({ encodings: 'compact' })
  expect(await encodings('parquet: { encodings: plain }')).toMatchObject({ encodings: 'plain' })
  expect(await encodings('engine: parquetjs-lite')).toMatchObject({ encodings: 'plain' })
})

test('windows with only a from end now, with a lag of 15 minutes', async () => {
  const { extract } = await read(withLine('extract', 'windows: { from: 2024-01-01T02:00:00+02:00 }'))
  expect(extract.windows).toEqual({
    from: Date.UTC(2024, 0, 1) * 1000,
    until: 'now',
    every: null,
    lagMs: 900_000,
    perChain: null,
  })
})

test.each([
  ['6h', { unit: 'hour', count: 6 }],
  ['30d', { unit: 'day', count: 30 }],
  ['week', { unit: 'week' }],
  ['month', { unit: 'month' }],
  ['year', { unit: 'year' }],
])('windows.every: %s', async (every, expected) => {
  const { extract } = await read(withLine('extract', `windows: { from: 2024-01-01, every: ${every} }`))
  expect(extract.windows?.every).toEqual(expected)
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

test('an API key is exchanged at the host of the base URL', async () => {
  const { service } = await read(withLine('service', 'api_key_env: KEY'))
  expect(service.auth).toEqual({
    kind: 'api-key',
    apiKeyEnv: 'KEY',
    tokenUrl: 'https://api.example.com/tokens/generate',
    tenantId: null,
  })
})

test.each([
  ['https://API.example.com/firework///', 'https://api.example.com/firework'],
  ['https://api.example.com', 'https://api.example.com'],
  ['http://localhost:8080/x/', 'http://localhost:8080/x'],
  ['http://127.3.2.1/x', 'http://127.3.2.1/x'],
  ['"http://[::1]:80/x"', 'http://[::1]/x'],
])('base_url %s is %s', async (given, expected) => {
  const { service } = await read(SMALLEST.replace('https://api.example.com/firework', given))
  expect(service.baseUrl).toBe(expected)
})

test('addresses are kept as paths, or as URLs', async () => {
  const { service } = await read(
    withLine(
      'service',
      ['search_path: https://other.example.com/astp/v2/credentials/_search', 'report_path: /v5/reports'].join(
        '\n  ',
      ),
    ),
  )
  expect(service.addresses.search_path).toBe('https://other.example.com/astp/v2/credentials/_search')
  expect(service.addresses.report_path).toBe('/v5/reports')
})

test.each([
  ['timeout: 500ms', 'timeoutMs', 500],
  ['timeout: 15m', 'timeoutMs', 900_000],
  ['timeout: 2h', 'timeoutMs', 7_200_000],
  ['timeout: 1d', 'timeoutMs', 86_400_000],
  ['requests_per_second: 0.25', 'requestsPerSecond', 0.25],
  ['max_response_bytes: 64MB', 'maxResponseBytes', 64_000_000],
  ['max_response_bytes: 64MiB', 'maxResponseBytes', 64 * 1024 * 1024],
  ['max_response_bytes: 4096', 'maxResponseBytes', 4096],
] as const)('service: %s', async (line, key, expected) => {
  expect((await read(withLine('service', line))).service[key]).toBe(expected)
})

test.each([
  ['query', ['query']],
  ['window', ['window']],
  ['none', []],
  ['[]', []],
  ['[window, query, window]', ['query', 'window']],
])('partition_by: %s', async (given, expected) => {
  expect((await read(withLine('load', `partition_by: ${given}`))).load.partitionBy).toEqual(expected)
})

test.each([
  ["'0640'", 0o640, 0o750],
  ['0640', 0o640, 0o750],
  ['0o644', 0o644, 0o755],
  ["'664'", 0o664, 0o775],
])('file_mode: %s is octal in any notation', async (given, file, folder) => {
  const { load } = await read(withLine('load', `file_mode: ${given}`))
  expect([load.fileMode, load.dirMode]).toEqual([file, folder])
})

test.each([
  ['none', [null, null, null]],
  ['', [500, null, 100]],
  ['null', [500, null, 100]],
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
      expect.stringMatching(/^p\.yaml:7:\d+: load\.\w+: expected no table_formats beside it/),
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
    'p.yaml:7:3: extract.min_searches_remaining: does not go with resource: reports, which costs no searches',
  ])
  expect(await problems(withLine('transform', 'on_invalid: fail\n  max_quarantined: 5'))).toEqual([
    expect.stringContaining('max_quarantined: goes with on_invalid: quarantine'),
  ])
})

test('csv has settings of its own', async () => {
  const { load } = await read(
    withLine(
      'load',
      '{ format: csv, engine: csv-stringify, compression: gzip, csv: { escape_formulas: true } }',
    ),
  )
  expect(load.format).toEqual({
    kind: 'csv',
    engine: 'csv-stringify',
    compression: 'gzip',
    escapeFormulas: true,
  })
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
