import { expect, test } from 'vitest'
import { decodeRecordBatch } from '../../src/rows/index.ts'
import { createDecoder } from '../../src/transform/index.ts'
import { credential, decode, decodedRows, response, source } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'

test('a page has exactly the columns of the plan, in its order', () => {
  const all = decodeSettings().columns
  for (const columns of [all, all.slice(0, 3), all.slice(7, 9), all.slice(-4), [...all].reverse()]) {
    const [row] = decodedRows([credential()], { columns })
    expect(Object.keys(row!)).toEqual(columns.map(({ name }) => name))
  }
})

test('a nullable field may be missing as well', () => {
  const required = {
    id: 1,
    identity_name: 'ada',
    imported_at: '2024-07-22T19:25:52Z',
    source_id: 'leak_9',
    source: { id: 'leak_9' },
  }
  const [full, bare, noSource] = decodedRows([
    credential(),
    required,
    { ...required, id: 2, source: null, domain: null, hash: null },
  ])
  const nulls = Object.entries(bare!).filter(([, value]) => value === null)
  expect(nulls.length).toBe(Object.keys(full!).length - 6)
  expect(noSource).toEqual({ ...bare, id: 2 })
  expect(noSource).toMatchObject({ source_id: 'leak_9', source_name: null, source_is_alert_enabled: null })
})

test('the identifier of a known password is a string, whatever its type in the response', () => {
  const ids = decodedRows(
    [17, '17', '', -3, 9007199254740991, null].map((known_password_id) => credential({ known_password_id })),
  )
  expect(ids.map((row) => row.known_password_id)).toEqual(['17', '17', '', '-3', '9007199254740991', null])
})

test('the columns of a source share one small table, as do those of the query', () => {
  const items = Array.from({ length: 100 }, (_, i) =>
    credential({
      source_id: `leak_${i % 4}`,
      source: source({ id: `leak_${i % 4}`, name: `Leak ${i % 3}` }),
    }),
  )
  const { groups, columns } = decodeRecordBatch(decode(items).recordBatch!)
  const group = (name: string) => columns.find((column) => column.name === name)!.group
  const ofSources = columns.filter(({ name }) => name.startsWith('source_')).map((column) => column.group)
  expect(new Set(ofSources).size).toBe(1)
  expect(groups[group('source_id')!]!.size).toBe(12)
  expect(group('query_type')).toBe(group('query_value'))
  expect(groups[group('query_type')!]).toEqual({ size: 1, indices: null })
  expect(groups[group('hash')!]).toEqual({ size: 1, indices: null })
  expect(groups[group('domain')!]!.size).toBe(1)
})

test('sources that differ in one character have different rows in the table', () => {
  const { description_fr, ...rest } = source()
  const text = String(description_fr)
  const texts = Array.from(text, (_, i) => `${text.slice(0, i)}_${text.slice(i + 1)}`)
  const items = [...texts, ...texts].map((changed) =>
    credential({ source: { ...rest, name: null, description_fr: changed } }),
  )
  const { read } = readersOf(decodeSettings())
  for (let page = 0; page < 2; page++) {
    const rows = rowsOf(read(response(items), pageContext()))
    expect(rows.map((row) => row.source_description_fr)).toEqual([...texts, ...texts])
  }
})

test('a page may have more sources than the cache', () => {
  const { read } = readersOf(decodeSettings())
  const name = (i: number) => `Leak ${i} ${'x'.repeat(100)}`
  for (let page = 0; page < 9; page++) {
    const first = page === 8 ? 0 : page * 5000
    const numbers = Array.from({ length: 5000 }, (_, i) => first + i)
    const items = numbers.map((i) => credential({ source: source({ id: `leak_${i}`, name: name(i) }) }))
    const rows = rowsOf(read(response(items), pageContext()))
    expect(rows.map((row) => row.source_name)).toEqual(numbers.map(name))
  }
})

test('a column with many values needs no table', () => {
  const items = Array.from({ length: 5000 }, (_, i) =>
    credential({ domain: i % 100 === 7 ? null : `host-${i % 3000}.example`, hash_type: `type-${i % 900}` }),
  )
  const page = decode(items)
  const rows = rowsOf(page)
  expect(rows.map((row) => row.domain)).toEqual(items.map((item) => item.domain))
  expect(rows.map((row) => row.hash_type)).toEqual(items.map((item) => item.hash_type))
  const { columns } = decodeRecordBatch(page.recordBatch!)
  expect(columns.find(({ name }) => name === 'domain')!.group).toBeNull()
  expect(columns.find(({ name }) => name === 'hash_type')!.group).not.toBeNull()
})

test('a page keeps its values after the decoder has read the next', () => {
  const decoder = createDecoder(decodeSettings({ secret: 'plaintext' }))
  const body = (letter: string) =>
    response(
      Array.from({ length: 3000 }, (_, id) =>
        credential({ id, hash: letter.repeat(1 + (id % 50)), domain: letter }),
      ),
    )
  const first = decoder(body('a'), pageContext())
  const before = rowsOf(first)
  const second = decoder(body('b'), pageContext())
  expect(rowsOf(first)).toEqual(before)
  expect(rowsOf(second)[49]).toMatchObject({ domain: 'b', hash: 'b'.repeat(50) })
  expect(first.recordBatch!.buffer).not.toBe(second.recordBatch!.buffer)
  expect(first.recordBatch!.byteLength).toBe(first.recordBatch!.buffer.byteLength)
})

test('a response is read at any offset in its buffer', () => {
  const body = response([credential()])
  const padded = Buffer.concat([Buffer.from('garbage'), body, Buffer.from('garbage')])
  const page = createDecoder(decodeSettings())(padded.subarray(7, 7 + body.length), pageContext())
  expect(rowsOf(page)).toEqual(decodedRows([credential()]))
})
