import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { cases, THOROUGH } from '../support/thorough.ts'
import { agreement, isEqual } from './agreement.ts'
import { credential, source } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'
import { wildness } from './random-page.ts'

const PLAIN = cases(700, 50)
/** By default every seventh byte is changed. */
const STEP = THOROUGH ? 1 : 7
const ODD = cases(1500, 100)

test('ordinary pages are read as by JSON.parse and the schema', () => {
  const { check } = agreement()
  fc.assert(
    fc.property(fc.integer(), (seed) => check(seed, 0)),
    { numRuns: PLAIN },
  )
})

test.each([
  ['an ordinary page', {}],
  ['nine unknown fields', Object.fromEntries([...'abcdefghi'].map((name) => [name, name]))],
  [
    'two hundred unknown fields',
    Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`field_${i}`, i])),
  ],
  ['a field that begins with a digit', { '2fa_enabled': true }],
])('the items of %s are not parsed one by one', (_, fields) => {
  const items = Array.from({ length: 300 }, (_, id) => ({ ...ITEM, ...fields, id: 33880703907 + id }))
  const body = Buffer.from(JSON.stringify({ items, next: null }))
  const readers = readersOf(decodeSettings())
  const parse = vi.spyOn(JSON, 'parse')
  try {
    expect(readers.read(body, pageContext()).rows).toBe(300)
    expect(parse.mock.calls.length).toBeLessThan(10)
  } finally {
    parse.mockRestore()
  }
  expect(isEqual(readers, body, pageContext())).toBe(true)
})

test('so are pages with oddities and damage', () => {
  const { check } = agreement()
  let pages = 0
  fc.assert(
    fc.property(fc.integer(), wildness(500), (seed, wildness) => {
      if (check(seed, wildness)) pages++
    }),
    { numRuns: ODD },
  )
  expect(pages).toBeGreaterThan(ODD / 10)
})

test('so is a page that is cut off or changed at any byte', () => {
  const paths = readersOf(decodeSettings({ secret: 'plaintext' }))
  const body = smallPage()
  for (let at = 0; at < body.length; at += STEP) {
    isEqual(paths, body.subarray(0, at), pageContext())
    for (const byte of [0x22, 0x5c, 0x20]) {
      const changed = Buffer.from(body)
      changed[at] = byte
      isEqual(paths, changed, pageContext())
    }
  }
})

const ITEM = credential({
  hash: 'tea"pot\u00e9',
  hash_type: null,
  known_password_id: 12,
  source: source({ description_fr: null }),
  urls: ['https://a.example'],
})

function smallPage(): Buffer {
  return Buffer.from(JSON.stringify({ items: [ITEM, { ...ITEM, id: 33880703908 }], next: 'WzE3' }))
}
