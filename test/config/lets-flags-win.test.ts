// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pipeline files refer to variables that way
import { expect, test } from 'vitest'
import { problems, read, SMALLEST, withLine } from './pipeline-file.ts'

const FULL = `name: acme
service:
  base_url: https://api.example.com
extract:
  domains: [acme.com]
  domains_file: none.txt
  queries: [{ type: keyword, keyword: jane }]
  windows: { from: 2020-01-01, until: 2021-01-01, every: year }
  concurrency: 2
load:
  path: \${OUT}
  format: json
`

test('every flag takes precedence over the file, even over an invalid value', async () => {
  const { extract, load } = await read(FULL, {
    overrides: {
      from: '2024-01-01',
      until: 'now',
      domains: ['Other.com', 'other.com'],
      output: '/data/$${x}',
      format: 'csv',
      maxRequests: 7,
      concurrency: 9,
    },
  })
  expect(extract).toMatchObject({
    queries: [{ type: 'domain', fqdn: 'other.com' }],
    windows: { from: Date.UTC(2024, 0, 1) * 1000, until: 'now', every: { unit: 'year' } },
    maxRequests: 7,
    concurrency: 9,
  })
  expect(load.path).toBe('/data/$${x}')
  expect(load.format.kind).toBe('csv')
})

test('--from and --until define windows if the file has none', async () => {
  const { extract } = await read(SMALLEST, { overrides: { from: '2024-01-01', until: '2024-02-01' } })
  expect(extract.windows).toMatchObject({ until: Date.UTC(2024, 1, 1) * 1000, every: null })
})

test('--output is relative to the working directory', async () => {
  const { load } = await read(SMALLEST, { overrides: { output: 'here' } })
  expect(load.path).toMatch(/spillway-config-[^/]+\/here$/)
})

test('problems name the flag', async () => {
  const found = await problems(SMALLEST, {
    overrides: {
      from: 'yesterday',
      until: '2024-02-30',
      domains: ['a.com', 'a/b'],
      output: '',
      format: 'json',
      maxRequests: 0.5,
      concurrency: Number.NaN,
    },
  })
  expect(found.map((line) => line.replace(/: expected .*, found /, ': found '))).toEqual([
    '--domain: found "a/b": the character "/"',
    '--from: found "yesterday"',
    '--until: found "2024-02-30"',
    '--concurrency: found NaN',
    '--max-requests: found 0.5',
    '--format: found "json"',
    '--output: found ""',
  ])
})

test('a flag that contradicts the file is reported too', async () => {
  expect(
    await problems(withLine('extract', 'windows: { from: 2024-01-01 }'), {
      overrides: { until: '2023-01-01' },
    }),
  ).toEqual(['--until: expected a time after the beginning, "2024-01-01", found "2023-01-01"'])
  expect(await problems(SMALLEST, { overrides: { until: '2023-01-01' } })).toEqual([
    '--until: extract.windows.from: missing; expected a date or date-time that exists, such as 2024-01-31 or 2024-01-31T06:00:00Z',
  ])
  const reports = SMALLEST.replace('domains: [acme.com]', 'resource: reports\n  all: true')
  expect(await problems(reports, { overrides: { from: '2024-01-01', domains: ['a.com'] } })).toEqual([
    '--domain: does not go with resource: reports',
    '--from: does not go with resource: reports',
  ])
  expect(await problems(withLine('load', 'compression: zstd'), { overrides: { format: 'csv' } })).toEqual([
    'p.yaml:7:16: load.compression: expected none | gzip with format csv, found "zstd"',
  ])
})

test('a flag does not hide an invalid section', async () => {
  expect(
    await problems(SMALLEST.replace('  domains: [acme.com]', '  windows: soon\n  domains: [a.com]'), {
      overrides: { from: '2024-01-01' },
    }),
  ).toEqual(['p.yaml:5:12: extract.windows: expected a mapping of keys to values, found "soon"'])
})
