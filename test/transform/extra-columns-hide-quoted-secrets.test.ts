import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ExtraField } from '../../src/core/index.ts'
import type { DecodeSettings } from '../../src/rows/index.ts'
import { masksOf, maskText } from '../../src/transform/mask/index.ts'
import { CODES, FORMS, HARD_SECRETS, unpleasantSecret } from '../support/quotations.ts'
import { cases, some } from '../support/thorough.ts'
import { isEqual, unknownField } from './agreement.ts'
import { credential } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, type Row, rowsOf } from './plans.ts'

const FIELDS = [
  unknownField('note', 'note', 'string'),
  unknownField('deep', 'deep', 'json'),
  unknownField('key', 'key', 'json'),
  unknownField('twice', 'twice', 'json'),
]

/** Rows of a page; both decode paths agree on it. */
function rowsWith(
  items: readonly string[],
  extras: readonly ExtraField[],
  plan: Partial<DecodeSettings>,
): readonly Row[] {
  const paths = readersOf(decodeSettings({ extras, ...plan }))
  const body = Buffer.from(`{"items":[${items}],"next":null}`)
  expect(isEqual(paths, body, pageContext())).toBe(true)
  const page = paths.plain(body, pageContext())
  expect(page.quarantined).toEqual([])
  return rowsOf(page) as readonly Row[]
}

/** Quotes the secret in each of {@link FIELDS}; the service writes the page as it likes. */
function itemsThatQuote(secret: string, own: object): readonly (readonly [string, string])[] {
  return Object.entries({ ...FORMS, ...CODES }).map(([name, quote], i) => {
    const text = `pw: ${quote(secret)} 2024`
    const item = {
      ...credential({ id: i + 1, ...own }),
      note: text,
      deep: { a: [1, { b: text }] },
      key: { [text]: 1 },
    }
    const written = JSON.stringify(item)
    // Of two members of one name JSON.parse returns the last; the column has both.
    const twice = `{"a":${JSON.stringify(text)},"a":"-"}`
    const ascii =
      i % 2 === 0
        ? written
        : written.replace(/[^\0-~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    return [name, `${ascii.slice(0, -1)},"twice":${twice}}`]
  })
}

function expectAllMasked(secret: string, own: object, plan: Partial<DecodeSettings>): void {
  const masks = masksOf(decodeSettings(plan))
  const shownAs = [maskText(masks.secret, secret), maskText(masks.identity, secret)]
  const items = itemsThatQuote(secret, own)
  const rows = rowsWith(
    items.map(([, item]) => item),
    FIELDS,
    plan,
  )
  expect(rows.length).toBe(items.length)
  for (const [i, { note, deep, key, twice }] of rows.entries()) {
    const [form, item] = items[i]!
    const text: string = JSON.parse(item).note
    expect(note, `${JSON.stringify(secret)} ${form}`).not.toBe(text.toWellFormed())
    expect(
      shownAs.some((mask) => (note as string).includes(mask)),
      `${JSON.stringify(secret)} ${form}: ${note}`,
    ).toBe(true)
    for (const json of [deep, key, twice]) {
      expect(json).not.toContain(JSON.stringify(text.toWellFormed()))
      expect(json).toMatch(/\[REDACTED\]|[0-9a-f]{64}/)
    }
  }
}

/** Shorter ones count only as a whole. */
const LONG_ENOUGH = HARD_SECRETS.filter((secret) => secret.length >= 4)

test.each(some(LONG_ENOUGH, 8))(
  "a row's own secret is masked in its extra columns however it is quoted: %j",
  (secret) => {
    expectAllMasked(secret, { hash: secret }, {})
  },
)

test.each(['dave@corp.test', 'zoë.o’hara+a%b@corp.test', '+33 6 12 34 56 78', 'DOMAIN\\jürgen'])(
  'so is an identity that the policy hides: %s',
  (identity) => {
    for (const policy of ['drop', 'hmac'] as const)
      expectAllMasked(identity, { identity_name: identity }, { identity: policy })
  },
)

test('so is any other secret', () => {
  fc.assert(
    fc.property(unpleasantSecret, (secret) => expectAllMasked(secret, { hash: secret }, {})),
    { numRuns: cases(600, 25) },
  )
})

test('base64 of a secret of four to six characters is found at any offset, and words are not taken for it', () => {
  const shown = (secret: string, note: string) =>
    rowsWith([JSON.stringify({ ...credential({ hash: secret }), note })], FIELDS, {})[0]!.note
  for (const secret of ['abcd', 'P@s5', 'pass1', 'hünte', 'dragon', 'monkey7', 'baseball'])
    for (const before of ['', 'u', 'u:', 'abc'])
      for (const after of ['', '!', '!!'])
        for (const encoding of ['base64', 'base64url'] as const)
          expect(shown(secret, `Basic ${Buffer.from(before + secret + after).toString(encoding)}`)).toBe(
            '[REDACTED]',
          )
  // Code of other bytes, of which the characters in the middle agree.
  const [like, unlike] = [Buffer.from('abcd'), Buffer.from('`bcd')]
  expect(shown(String(like), `x${unlike.toString('base64')}`)).toBe(`x${unlike.toString('base64')}`)
  for (const word of ['credentials', 'username', 'information', 'https://example.org/index.html'])
    expect(shown('rede', word)).toBe(word.replace('rede', '[REDACTED]'))
})

test('a secret that is a number or a time is taken out of numbers and times', () => {
  const shown = (type: ExtraField['type'], written: string, hash: string) =>
    rowsWith(
      [`${JSON.stringify(credential({ hash })).slice(0, -1)},"x":${written}}`],
      [unknownField('x', 'x', type)],
      {},
    )[0]!.x
  for (const written of ['1234567', '1234567.0', '1.234567e6', '12345670e-1'])
    expect(shown('int64', written, '1234567'), written).toBeNull()
  expect(shown('int64', '1234568', '1234567')).toBe(1234568)
  // Seven digits occur in longer numbers by chance.
  expect(shown('int64', '912345678', '1234567')).toBe(912345678)
  expect(shown('int64', '912345678', '12345678')).toBeNull()
  expect(shown('json', '{"a":[1234567]}', '1234567')).toBe('{"a":["[REDACTED]"]}')
  expect(shown('json', '{"a":[1234568]}', '1234567')).toBe('{"a":[1234568]}')
  expect(shown('int64', '9007199254740993', '9007199254740993')).toBeNull()
  expect(shown('int64', '9007199254740993', '9007199254740992')).toBe(9007199254740993n)
  expect(shown('int64', '12', 'a12')).toBe(12)
  expect(shown('int64', '0', '')).toBe(0)
  for (const secret of ['2001-02-03', '2001-02-03T00:00:00Z', '2001-02-03T01:00:00+01:00'])
    for (const written of ['"2001-02-03"', '"2001-02-03T00:00:00.000Z"', '"2001\\u002d02-03"'])
      expect(shown('timestamp', written, secret), `${secret} ${written}`).toBeNull()
  // The years of most times are somebody's code.
  expect(shown('timestamp', '"2001-02-03"', '2001')).toBe(981_158_400_000_000)
})

test('a secret of fewer than four characters counts only as a whole', () => {
  const shown = (note: unknown, hash: string) =>
    rowsWith([JSON.stringify({ ...credential({ hash }), note: 'x', deep: note })], FIELDS, {})[0]!.deep
  for (const [secret, quoted] of [
    ['hi', 'HI'],
    ['éa', '\\u00e9a'],
    ['"\'', '%22%27'],
    ['жук', '%D0%B6ук'],
    ['abc', 'abc'],
  ] as const) {
    expect(shown([1, { a: quoted }], secret)).toBe('[1,{"a":"[REDACTED]"}]')
    expect(shown([1, { [quoted]: 2 }], secret)).toBe('[1,{"[REDACTED]":2}]')
    expect(shown([`x${quoted}y`], secret)).toBe(JSON.stringify([`x${quoted}y`]))
  }
})
