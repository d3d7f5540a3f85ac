import { expect, test } from 'vitest'
import { problems, read, SMALLEST, withLine } from './pipeline-file.ts'

const FULL = `name: acme
service:
  base_url: https://api.example.com
extract:
  domains: [acme.com]
  queries: [{ type: domain, fqdn: other.com }, { type: keyword, keyword: jane }]
  windows: { from: 2020-01-01, until: 2021-01-01, every: year }
  concurrency: 2
load:
  path: \${OUT}
  format: json
`

test('every flag takes precedence over the file, even over an invalid value', async () => {
  const { extract, load } = await read(FULL, {
    overrides: {
      ...{ from: '2024-01-01', until: 'now', domains: ['Other.com', 'other.com'], output: '/data/$${x}' },
      ...{ format: 'csv', maxRequests: 7, concurrency: 9 },
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

test('--domain chooses among the domains of the file, with the names that they have there', async () => {
  const queries =
    'queries: [{ type: domain, fqdn: b.example, as: case-17 }, { type: keyword, keyword: a.example }]'
  const { extract } = await read(withLine('extract', queries), {
    overrides: { domains: ['B.example', 'acme.com', 'b.example'], from: '2024-01-01', until: '2024-02-01' },
  })
  expect(extract.queries).toEqual([
    { type: 'domain', fqdn: 'acme.com' },
    { type: 'domain', fqdn: 'b.example', as: 'case-17' },
  ])
  expect(extract.unfiltered?.queries).toHaveLength(3)
})

test('a domain that the file lacks is refused, with what was probably meant', async () => {
  const given = (text: string, ...domains: string[]) => problems(text, { overrides: { domains } })
  const expected = '--domain: expected a domain of the file (one to add belongs there), found'
  expect(await given(SMALLEST, 'acne.com', 'acme.com', 'elsewhere.example')).toEqual([
    `${expected} "acne.com"; did you mean \`acme.com\`?`,
    `${expected} "elsewhere.example"`,
  ])
  const keyword = SMALLEST.replace('domains: [acme.com]', 'queries: [{ type: keyword, keyword: acme.com }]')
  expect(await given(keyword, 'acme.com')).toEqual([`${expected} "acme.com"`])
  // The file alone is invalid without these flags, which is no reason to take any domain.
  const dated = withLine('extract', 'windows: { from: 2024-01-01 }')
  expect(await problems(dated, { overrides: { domains: ['acne.com'], until: '2024-02-01' } })).toEqual([
    expect.stringContaining('acne.com'),
  ])
})

test('--domain names what to request where the file names no query', async () => {
  const { extract } = await read(SMALLEST.replace('domains: [acme.com]', 'concurrency: 1'), {
    overrides: { domains: ['b.example'] },
  })
  expect(extract.queries).toEqual([{ type: 'domain', fqdn: 'b.example' }])
})

test('--from and --until define windows if the file has none', async () => {
  const { extract } = await read(SMALLEST, { overrides: { from: '2024-01-01', until: '2024-02-01' } })
  expect(extract.windows).toMatchObject({ until: Date.UTC(2024, 1, 1) * 1000, every: null })
})

test('problems name the flag', async () => {
  const found = await problems(SMALLEST, {
    overrides: {
      ...{ from: 'yesterday', until: '2024-02-30', domains: ['a.com', 'a/b'], output: '', format: 'json' },
      ...{ maxRequests: 0.5, concurrency: Number.NaN },
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
  const dated = withLine('extract', 'windows: { from: 2024-01-01 }')
  expect(await problems(dated, { overrides: { until: '2023-01-01' } })).toEqual([
    '--until: expected a time after the beginning, "2024-01-01", found "2023-01-01"',
  ])
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
