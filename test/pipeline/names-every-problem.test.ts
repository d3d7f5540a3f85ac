import { expect, test } from 'vitest'
import { problems, SMALLEST, tableOf, withLine } from './pipeline-file.ts'

const DOMAIN = 'a domain name (letters, digits, -, _ and dots, at most 253 characters)'
const INSTANT = 'a date or date-time that exists, such as 2024-01-31 or 2024-01-31T06:00:00Z'
const URL_EXPECTED =
  'an http or https URL such as https://api.example.com/firework, without user name, password, query or fragment'
const VARIABLE = 'the name of an environment variable (letters, digits and _), never the secret itself'
const CONTAINER = 'az://container/prefix with a container of 3 to 63 of a-z, 0-9 and single -'
const LIMIT = 'an integer from 0 on, or a share from 0% to 100% such as 1% or 0.5%'
const DURATION = 'duration from 1ms to 1d, such as 500ms, 60s, 15m, 2h or 1d'

/** Section, line, column of the value, path, and message. */
const WRONG = tableOf(`
service ~ requests_per_second: fast ~ 24 ~ requests_per_second ~ expected a number above 0, at most 10000, found "fast"
service ~ retries: 2.5 ~ 12 ~ retries ~ expected an integer from 0 to 100, found 2.5
service ~ timeout: 60 ~ 12 ~ timeout ~ expected a ${DURATION}, found 60
service ~ max_response_bytes: 1B ~ 23 ~ max_response_bytes ~ expected a number of bytes from 1024 to 2147483648, or a size such as 64MB or 256MiB, found "1B"
service ~ allow_http: yes ~ 15 ~ allow_http ~ expected true or false, found "yes"
service ~ token_env: my-token ~ 14 ~ token_env ~ expected ${VARIABLE}, found a string (not shown)
service ~ tenant_id: 1 ~ 3 ~ tenant_id ~ goes with api_key_env, which is not there
service ~ search_path: //evil.example ~ 16 ~ search_path ~ expected a path that begins with / or an http or https URL, without user name, password, query or fragment, found a string (not shown)
service ~ search_path: http://api.example.com/x ~ 16 ~ search_path ~ expected https, found http to another machine; tokens and leaked secrets would travel unencrypted (allow_http: true permits it)
extract ~ resource: people ~ 13 ~ resource ~ expected credentials | reports | feed, found "people"
extract ~ page_size: 10001 ~ 14 ~ page_size ~ expected an integer from 1 to 10000, or auto, found 10001
extract ~ include: [Known] ~ 13 ~ include[0] ~ expected a field name (a-z, 0-9 and _), found "Known"
extract ~ windows: { from: 2023-02-29 } ~ 20 ~ windows.from ~ expected ${INSTANT}, found "2023-02-29"
extract ~ windows: { from: 2024-01-01, until: tomorrow } ~ 39 ~ windows.until ~ expected ${INSTANT}, or now, found "tomorrow"
extract ~ windows: { from: 2024-01-01, until: 2024-01-01 } ~ 39 ~ windows.until ~ expected a time after the beginning, "2024-01-01", found "2024-01-01"
extract ~ windows: { until: now } ~ 3 ~ windows.from ~ missing; expected ${INSTANT}
extract ~ windows: { from: 0001-01-01, until: 2024-01-01, every: 1h } ~ 58 ~ windows.every ~ expected a length that makes at most 1000000 windows, found "1h"
extract ~ ids: [1] ~ 3 ~ ids ~ does not go with resource: credentials
extract ~ queries: [{ type: password }] ~ 21 ~ queries[0].type ~ expected domain | auth_domain | email | keyword | secret, found "password"
extract ~ queries: [acme.com] ~ 13 ~ queries[0] ~ expected a query such as { type: domain, fqdn: example.com }, found a string (not shown)
extract ~ queries: [{ type: domain, fqdn: a/b }] ~ 35 ~ queries[0].fqdn ~ expected ${DOMAIN}, found "a/b": the character "/"
extract ~ queries: [{ type: email, email: '<jane@acme.com>' }] ~ 35 ~ queries[0].email ~ expected an e-mail address, found a string (not shown): an address in angle brackets; write the address alone
extract ~ queries: [{ type: email, email: 'a@acme.com, b@acme.com' }] ~ 35 ~ queries[0].email ~ expected an e-mail address, found a string (not shown): several addresses; write each as a query of its own
extract ~ queries: [{ type: keyword, keyword: jane@acme.com }] ~ 39 ~ queries[0].keyword ~ expected a text of 1 to 256 characters, without @ and control characters, found a string (not shown): an e-mail address; a keyword is what precedes the @; ask for the address with a query of type: email
transform ~ columns: [] ~ 12 ~ columns ~ expected at least one column, found an empty list
transform ~ columns: [id, urls] ~ 17 ~ columns[1] ~ the column \`urls\` is there only when extract.include names it
transform ~ { secret: drop, columns: [hash] } ~ 29 ~ columns[0] ~ the column \`hash\` is taken away by transform.secret: drop
transform ~ max_quarantined: -1 ~ 20 ~ max_quarantined ~ expected ${LIMIT}, found -1
transform ~ max_quarantined: 0.5 ~ 20 ~ max_quarantined ~ expected ${LIMIT}, found 0.5
transform ~ max_quarantined: 101% ~ 20 ~ max_quarantined ~ expected ${LIMIT}, found "101%"
transform ~ max_quarantined: 1 % ~ 20 ~ max_quarantined ~ expected ${LIMIT}, found "1 %"
transform ~ max_quarantined: none ~ 20 ~ max_quarantined ~ expected ${LIMIT}, found "none"
transform ~ max_quarantined: true ~ 20 ~ max_quarantined ~ expected ${LIMIT}, found true
load ~ path: / ~ 9 ~ path ~ is the root of the file system, where other files are; expected a folder for the data set alone, found "/"
load ~ path: "gs://me:hunter2@bucket" ~ 9 ~ path ~ expected a folder, s3://bucket/prefix or az://container/prefix, found an address with a user (not shown)
load ~ path: az://Leaks/a ~ 9 ~ path ~ expected ${CONTAINER}, found "az://Leaks/a"
load ~ path: s3://Leaks/a ~ 9 ~ path ~ expected s3://bucket/prefix with a bucket of 3 to 63 of a-z, 0-9, - and ., found "s3://Leaks/a"
load ~ path: s3://leaks/a//b ~ 9 ~ path ~ expected a prefix of up to 300 of A-Z, a-z, 0-9, ., _, =, - and single /, found "a//b"
load ~ path: s3://leaks/../b ~ 9 ~ path ~ expected a prefix of up to 300 of A-Z, a-z, 0-9, ., _, =, - and single /, found "../b"
load ~ { path: 'az://leaks/a', s3: { region: eu-central-1 } } ~ 27 ~ s3 ~ goes with a load.path that begins with s3://
load ~ { path: 'az://leaks/a', azure: { endpoint: 'http://a.example.com' } } ~ 46 ~ azure.endpoint ~ expected https, found http to another machine; rows would travel unencrypted
load ~ file_mode: 600 ~ 14 ~ file_mode ~ expected an octal file mode such as '0600' or 0o640, which lets the owner read and write, found 600
load ~ partition_by: [query, windows] ~ 25 ~ partition_by[1] ~ expected query | window, found "windows"; did you mean \`window\`?
load ~ partition_by: { by: query } ~ 17 ~ partition_by ~ expected query, window, none or a list such as [query, window], found a mapping
load ~ engine: csv-stringify ~ 11 ~ engine ~ expected columnar | parquetjs-lite with format parquet, found "csv-stringify"
load ~ { format: csv, compression: zstd } ~ 31 ~ compression ~ expected none | gzip with format csv, found "zstd"
load ~ csv: { escape_formulas: true } ~ 3 ~ csv ~ does not go with format: parquet
load ~ { engine: parquetjs-lite, parquet: { encodings: compact } } ~ 51 ~ parquet.encodings ~ expected plain with engine parquetjs-lite, found "compact"
`)

test.each(WRONG)('%s: %s', async (section, line, column, path, text) => {
  const at = section === 'service' ? 3 : section === 'extract' ? 5 : 7
  expect(await problems(withLine(section as 'load', line))).toEqual([
    `p.yaml:${at}:${column}: ${section}.${path}: ${text}`,
  ])
})

test.each([
  ...['https://user:hunter2@api.example.com', 'https://@api.example.com', 'https://'],
  ...['https://api.example.com/x?token=hunter2', 'https://api.example.com/x#'],
  ...['eyJhbGciOi.eyJzdWIi.c2ln', '0123456789abcdef', 'https://me:pw@h.example'],
  ...['"https://api.exa\\tmple.com"', `https://h${'/'.repeat(3_000_000)}x`],
])('base_url: %.60s is refused and not shown', async (url) => {
  expect(await problems(SMALLEST.replace('https://api.example.com/firework', url))).toEqual([
    `p.yaml:3:13: service.base_url: expected ${URL_EXPECTED}, found a string (not shown)`,
  ])
})

test.each(['ftp://api.example.com/x', 'api.example.com', 'api.example.com:8443/firework'])(
  'base_url: %s is refused and shown: it contains no secret, in the file or in a variable',
  async (url) => {
    const given = (text: string) => SMALLEST.replace('https://api.example.com/firework', text)
    expect(await problems(given(url))).toEqual([
      `p.yaml:3:13: service.base_url: expected ${URL_EXPECTED}, found "${url}"`,
    ])
    expect(await problems(given('${URL}'), { env: { URL: url } })).toEqual([
      `p.yaml:3:13: service.base_url: expected ${URL_EXPECTED}, found "${url}" (from \${URL})`,
    ])
  },
)

test('a range is shown, also from a variable', async () => {
  const text = `${SMALLEST}  windows: { from: "\${FROM}", until: now }\n`
  const [found = ''] = await problems(text, { env: { FROM: '2024-13-01' } })
  expect(found).toContain('found "2024-13-01" (from $' + '{FROM})')
})

test('an unknown key is reported with the nearest known one and the list', async () => {
  expect(await problems(withLine('service', 'retires: 3'))).toEqual([
    expect.stringContaining('service: unknown key `retires`; did you mean `retries`?; allowed: '),
  ])
  expect(await problems(withLine('load', 'csv: { escape: true }'))).toContain(
    'p.yaml:7:10: load.csv: unknown key `escape`; allowed: escape_formulas',
  )
  expect(await problems(`${SMALLEST}__proto__: { name: x }\nconstructor: 1\n`)).toEqual([
    'p.yaml:6:1: unknown key `__proto__`; allowed: extends, name, service, extract, transform, load',
    'p.yaml:7:1: unknown key `constructor`; allowed: extends, name, service, extract, transform, load',
  ])
})

/** What is replaced in the smallest file, by which lines, and each problem. */
const REPLACED = tableOf(`
service: ~ servce: ~ 2:1: unknown key \`servce\`; did you mean \`service\`?; allowed: extends, name, service, extract, transform, load
extract: ~ extract: | queries: [{ type: email, emial: a@b.c }] ~ 5:28: extract.queries[0]: unknown key \`emial\`; did you mean \`email\`?; allowed: type, email, as
service: ~ service: | api_key_env: A | token_env: B ~ 4:3: service.token_env: expected token_env or api_key_env, found both
base_url: https://api.example.com/firework ~ retries: 1 ~ 2:1: service.base_url: missing; expected ${URL_EXPECTED}
domains: [acme.com] ~ order: asc ~ 4:1: extract: expected some domains, a domains_file that names some, or queries, found none
[acme.com] ~ [] | queries: [] ~ 5:3: extract.domains: expected some domains, a domains_file that names some, or queries, found none
domains: [acme.com] ~ domains_file: none.txt ~ 5:3: extract.domains_file: expected some domains, a domains_file that names some, or queries, found none
domains: [acme.com] ~ resource: reports ~ 4:1: extract: expected some ids, or all: true, found none
domains: [acme.com] ~ resource: reports | ids: [] ~ 6:3: extract.ids: expected some ids, or all: true, found none
domains: [acme.com] ~ resource: reports | all: false ~ 6:3: extract.all: expected some ids, or all: true, found none
domains: [acme.com] ~ resource: reports | ids: [1] | all: true ~ 7:3: extract.all: expected ids or all: true, found both
domains: [acme.com] ~ resource: reports | ids: [x] ~ 6:9: extract.ids[0]: expected an integer from 0 on, found "x"
domains: [acme.com] ~ resource: reports | all: true | domains: [a.com] | windows: { from: 2024-01-01 } | include: [urls] ~ 7:3: extract.domains: does not go with resource: reports ~ 8:3: extract.windows: does not go with resource: reports ~ 9:3: extract.include: does not go with resource: reports
`)

test.each(REPLACED)('%s by %s', async (before, after, ...expected) => {
  const text = SMALLEST.replace(before, after.replaceAll(' | ', '\n  '))
  const files = { 'none.txt': '# nothing yet\n\n' }
  expect(await problems(text, { files })).toEqual(expected.map((each) => `p.yaml:${each}`))
})

test('a missing required key is reported at its parent', async () => {
  expect(await problems('name: acme\n')).toEqual([
    'p.yaml:1:1: service: missing; expected a mapping of keys to values',
    'p.yaml:1:1: extract: missing; expected a mapping of keys to values',
  ])
})

test('all problems of each key are reported at once, in the order of the file; unknown ones do not hide those of several keys', async () => {
  const found = await problems(`nmae: acme
service:
  base_url: http://api.example.com
  retries: lots
extract:
  domains: [acme.com, a b]
  windows: { from: 2024-13-01 }
  windows: { from: 2024-01-01 }
  max_request: 5
transform: { columns: [idd], secret: drop }
load:
  format: csv
  compression: zstd
  compresion: gzip
`)
  const places = (lines: readonly string[]) => lines.map((line) => line.split(' ').slice(0, 2).join(' '))
  expect(places(found)).toEqual([
    ...['p.yaml:1:1: unknown', 'p.yaml:4:12: service.retries:', 'p.yaml:6:23: extract.domains[1]:'],
    ...['p.yaml:8:3: windows:', 'p.yaml:9:3: extract:', 'p.yaml:14:3: load:'],
  ])
  const unknown = await problems(`name: acme
color: blue
service:
  base_url: https://api.example.com
  speed: fast
extract:
  domains: [acme.com]
  windows: { from: 2024-02-01, until: 2024-01-01 }
transform: { columns: [idd] }
`)
  expect(places(unknown)).toEqual([
    ...['p.yaml:2:1: unknown', 'p.yaml:5:3: service:'],
    ...['p.yaml:8:39: extract.windows.until:', 'p.yaml:9:24: transform.columns[0]:'],
  ])
})

test('an invalid item of a list does not hide what is wrong with others', async () => {
  expect(
    await problems(`name: acme
service:
  base_url: https://api.example.com/firework
extract:
  queries: [{ type: domain }, { type: domain, fqdn: a.com, as: x }, 5, { type: domain, fqdn: b.com, as: x }]
transform:
  columns: [id, [domain], idd]
`),
  ).toEqual([
    expect.stringContaining('extract.queries[0].fqdn: missing'),
    expect.stringContaining('extract.queries[2]: expected a query'),
    expect.stringContaining('transform.columns[1]: expected a column name, found a list'),
  ])
})

test('no more than a hundred problems are reported', async () => {
  const found = await problems(SMALLEST.replace('[acme.com]', `[${'a/b, '.repeat(250)}]`))
  expect(found).toHaveLength(101)
  expect(found.at(-1)).toBe('… and 150 more')
})
