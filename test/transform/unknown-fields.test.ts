import { expect, test } from 'vitest'
import { learnSecret } from '../../src/core/index.ts'
import { CODES, FORMS, OTHER_SPELLINGS } from '../support/quotations.ts'
import { credential, decode, source } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'

test('unknown fields are counted by name and not exported', () => {
  const page = decode([
    credential({ score: 1, source: source({ owner: 'x' }) }),
    credential({ score: null, tags: [{ a: 1 }], source: source({ owner: 'x' }) }),
    credential({ event_uid: 'e', credential_hash: 'h', source: source({ url: 'u', 'a b': 1 }) }),
  ])
  expect(page.unknownFields).toEqual({ score: 2, tags: 1, 'source.owner': 2, '…': 1 })
})

test('only exported rows count', () => {
  const context = pageContext({ window: { from: 0, until: 1_721_676_352_893_439 } })
  expect(decode([credential({ score: 1 }), { score: 1 }], {}, context).unknownFields).toEqual({})
})

/** Names of unknown fields as they are shown: those of items with one each, and that of an item in quarantine. */
function shownNames(names: readonly string[]) {
  const { read } = readersOf(decodeSettings())
  const items = names.map((name, id) => credential({ id, [name]: 1 }))
  const all = [...items, credential({ id: null, [names[0]!]: 1 })]
  const page = read(Buffer.from(JSON.stringify({ items: all, next: null })), pageContext())
  const inQuarantine = Object.keys(page.quarantined[0]!.item as object).filter(
    (name) => !(name in credential()),
  )
  return { ...page.unknownFields, inQuarantine }
}

test('a name is shown if it looks like one and repeats no secret', () => {
  learnSecret('tok.secret-7716')
  const hidden = ['tok.secret-7716.x', 'a\u001b[31m\u0000\u009bb\n', 'is it "so"?', 'is it', '\ud800']
  const shown = ['2fa.is-on_', 'n'.repeat(64)]
  expect(shownNames([...hidden, 'n'.repeat(65), ...shown])).toEqual({
    '…': 6,
    ...Object.fromEntries(shown.map((name) => [name, 1])),
    inQuarantine: ['…'],
  })
})

test.each(['ключ2024', 'Québec2024', 'hunte', '😀2024ab'])(
  'whatever the spelling of the secret: %s',
  (secret) => {
    learnSecret(secret)
    const spellings = Object.values({ ...FORMS, ...CODES, ...OTHER_SPELLINGS }).map((write) => write(secret))
    const names = [...new Set(spellings.flatMap((each) => [each, `x_${each}`, `${each} is`]))]
    // What is cut off is no form of it.
    const shown = names.filter((name) => !name.includes([...secret].slice(0, -1).join('')))
    const { inQuarantine, ...counts } = shownNames([...shown, 'is it', 'n'.repeat(65)])
    expect(counts).toEqual({ '…': shown.length + 2 })
    expect(inQuarantine).toEqual(['…'])
    expect(shownNames(['device_id', 'source-2.x', '_x'])).toEqual({
      device_id: 1,
      'source-2.x': 1,
      _x: 1,
      inQuarantine: ['device_id'],
    })
  },
)

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
