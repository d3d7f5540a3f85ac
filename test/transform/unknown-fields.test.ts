import { expect, test } from 'vitest'
import { credential, decode, source } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'

test('unknown fields are counted by name and not exported', () => {
  const page = decode([
    credential({ score: 1, source: source({ owner: 'x' }) }),
    credential({ score: null, tags: [{ a: 1 }], source: source({ owner: 'x' }) }),
    credential({ event_uid: 'e', credential_hash: 'h', source: source({ url: 'u', pii_tags: [] }) }),
  ])
  expect(page.unknownFields).toEqual({ score: 2, tags: 1, 'source.owner': 2 })
})

test('only exported rows count', () => {
  const context = pageContext({ window: { from: 0, until: 1_721_676_352_893_439 } })
  expect(decode([credential({ score: 1 }), { score: 1 }], {}, context).unknownFields).toEqual({})
})

test('names are cut, and are those of the service otherwise: they are searched for secrets before they are shown', () => {
  const item = {
    ...credential(),
    'a\u001b[31m\u0000b': 1,
    ['x'.repeat(5000)]: 1,
    __proto__: null,
    '\ud800': 1,
  }
  const names = Object.keys(decode([item]).unknownFields)
  expect(names).toEqual(['a\u001b[31m\u0000b', 'x'.repeat(1000), '\ufffd'])
})

test('after fifty names all others are counted together', () => {
  const items = Array.from({ length: 70 }, (_, i) => credential({ [`field_${i}`]: 1, score: 1 }))
  const counts = decode(items).unknownFields
  expect(Object.keys(counts)).toHaveLength(51)
  expect(counts).toMatchObject({ score: 70, field_0: 1, field_48: 1, '…': 21 })
})

test('the same names are counted together as by plain reading, whatever the names', () => {
  // Keys that look like array indices come first in an object, whatever their position in the response.
  const items = Array.from({ length: 30 }, (_, i) => `"field_${i}":1,"${i}":2`)
  const body = Buffer.from(
    `{"items":[${[`"first":0`, ...items].map((fields, id) => `{${fields},${JSON.stringify(credential({ id })).slice(1)}`).join(',')}]}`,
  )
  const { read, plain } = readersOf(decodeSettings())
  const counts = plain(body, pageContext()).unknownFields
  expect(counts).toMatchObject({ first: 1, '24': 1, '…': 11 })
  expect(read(body, pageContext()).unknownFields).toEqual(counts)
})
