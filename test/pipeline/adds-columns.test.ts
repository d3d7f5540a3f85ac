import { expect, test } from 'vitest'
import { takenFields } from '../../src/pipeline/resolve/resolve-transform.ts'
import { columnsOf } from '../../src/rows/index.ts'
import { CREDENTIAL_FIELDS, SOURCE_FIELDS } from '../../src/transform/schema.ts'
import { problems, read, SMALLEST, tableOf, withLine } from './pipeline-file.ts'

async function columns(line: string): Promise<readonly string[]> {
  return columnsOf(await read(withLine('transform', line))).map(({ name, type }) => `${name} ${type}`)
}

async function problem(columns: string): Promise<string> {
  const [only, ...others] = await problems(withLine('transform', `extra_columns: [${columns}]`))
  expect(others).toEqual([])
  return only!.replace(/^p\.yaml:7:\d+: transform\.extra_columns/, '')
}

test('extra columns follow the others, in the order of the file, with `columns` and without', async () => {
  const extra =
    '[{ name: level, path: a.b, type: int64 }, source_pii_tags, { name: raw, path: source.raw, type: json }]'
  const all = await columns(`extra_columns: ${extra}`)
  expect(all).toHaveLength(15 + 3)
  expect(all.slice(-4)).toEqual(['query_value text', 'level int64', 'source_pii_tags list', 'raw text'])
  const some = `extra_columns: ${extra}\n  columns: [source_pii_tags, domain, id]`
  expect(await columns(some)).toEqual([
    'id int64',
    'domain text',
    'level int64',
    'source_pii_tags list',
    'raw text',
  ])
  expect((await read(SMALLEST)).transform.extraColumns).toEqual([])
})

// CRC-32 is linear, so names with the same field_id are easily found.
const REFUSED = `
evnt_uid ~ [0]: expected event_uid | credential_hash | source_pii_tags | source_url, or { name, path, type }, found "evnt_uid"
event_uid, event_uid ~ [1]: the column \`event_uid\` is there twice
{ name: a, path: a, type: string }, { name: a, path: b, type: json } ~ [1].name: the column \`a\` is there twice
{ name: a, path: a, type: text } ~ [0].type: expected string | int64 | boolean | timestamp | json, found "text"
{ name: a, path: a, type: json, of: b } ~ [0]: unknown key \`of\`; allowed: name, path, type
{ name: a, type: json } ~ [0].path: missing; expected the names of up to 16 members joined by dots, such as details.severity
{ name: a, path: a..b, type: json } ~ [0].path: expected the names of up to 16 members joined by dots, such as details.severity, found "a..b"
{ name: A, path: a, type: json } ~ [0].name: expected the name of a column (a-z, 0-9 and _, a letter first, at most 63 characters), found "A"
{ name: domain, path: a, type: json } ~ [0].name: \`domain\` is taken: it names another column or a folder, or begins with \`spillway_\`
{ name: spillway_x, path: a, type: json } ~ [0].name: \`spillway_x\` is taken: it names another column or a folder, or begins with \`spillway_\`
{ name: import_window, path: a, type: json } ~ [0].name: \`import_window\` is taken: it names another column or a folder, or begins with \`spillway_\`
{ name: a, path: hash, type: string } ~ [0].path: the field \`hash\` is the column \`hash\`
{ name: a, path: source.url, type: string } ~ [0].path: the field \`source.url\` is the column \`source_url\`
{ name: a, path: source, type: json } ~ [0].path: the fields of \`source\` are columns of their own; name one of them
{ name: cmgiyrj, path: a, type: json }, { name: cmrtojf, path: b, type: json } ~ [1].name: \`cmrtojf\` would have the field_id of \`cmgiyrj\` in Parquet; choose another name
`

test.each(tableOf(REFUSED))('[%s] is refused with its line', async (columns, message) => {
  expect(await problem(columns)).toBe(message)
})

test('of several columns, every wrong shape is reported, and then everything else', async () => {
  const columns = (first: string, third: string) =>
    `extra_columns: [${first}, { name: spillway_x, path: a, type: string }, ${third}, { name: b, path: hash, type: json }]`
  expect(await problems(withLine('transform', columns('{ nam: ok }', '7')))).toEqual([
    expect.stringContaining('transform.extra_columns[0].path: missing'),
    expect.stringContaining('transform.extra_columns[0].type: missing'),
    expect.stringContaining('transform.extra_columns[0]: unknown key `nam`; did you mean `name`?'),
    expect.stringContaining('transform.extra_columns[2]: expected event_uid'),
  ])
  expect(await problems(withLine('transform', columns('event_uid', 'source_url')))).toEqual([
    expect.stringContaining('p.yaml:7:38: transform.extra_columns[1].name: `spillway_x` is taken'),
    expect.stringMatching(/transform\.extra_columns\[3\]\.path: the field `hash` is the column `hash`$/),
  ])
})

test('reports have no extra columns, and an unnamed column is not exported', async () => {
  const file = SMALLEST.replace('  domains: [acme.com]', '  resource: reports\n  all: true')
  expect(await problems(`${file}transform:\n  extra_columns: [event_uid]\n`)).toEqual([
    'p.yaml:8:3: transform.extra_columns: does not go with resource: reports',
  ])
  expect(await problems(withLine('transform', 'columns: [id, event_uid]'))).toEqual([
    'p.yaml:7:17: transform.columns[1]: the column `event_uid` is there only when transform.extra_columns names it',
  ])
})

test('paths are refused to exactly the fields that this version knows', () => {
  const known = [
    ...[...CREDENTIAL_FIELDS].filter((name) => name !== 'source'),
    ...[...SOURCE_FIELDS].map((name) => `source.${name}`),
  ]
  expect([...takenFields('credentials').keys()].sort()).toEqual(known.sort())
})
