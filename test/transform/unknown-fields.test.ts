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

test('a name is shown if it looks like one', () => {
  const item = {
    ...credential(),
    'a\u001b[31m\u0000b': 1,
    'is it': 1,
    ['x'.repeat(64)]: 1,
    ['x'.repeat(65)]: 1,
    '2fa.is-on_': 1,
    '\ud800': 1,
    source: source({ 'a b': 1 }),
  }
  expect(decode([item]).unknownFields).toEqual({ ['x'.repeat(64)]: 1, '2fa.is-on_': 1, '…': 5 })
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
