import { expect, it } from 'vitest'
import { filedIdentity, suppressionDigest } from '../../src/transform/index.ts'
import { credential, response } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'

const KEY = Buffer.alloc(32, 1)

const suppress = (...people: readonly string[]) => ({
  key: KEY,
  digests: people.map((person) => suppressionDigest(KEY, person)),
})

const at = (second: number): string => `2024-07-22T19:25:${String(second).padStart(2, '0')}+00:00`
const micros = (second: number): number => Date.parse(at(second)) * 1000

const named = (identity_name: unknown, second: number, more = {}) =>
  credential({ id: second, identity_name, imported_at: at(second), ...more })

it.each(['keep', 'hmac', 'drop'] as const)(
  'their items are dropped and the ids remembered, identity: %s',
  (identity) => {
    const items = [
      named('Ada.Loam@scatterholt.com', 1),
      named('bo@quillmere.net', 2),
      named(' ada.loam@SCATTERHOLT.com\n', 3),
      // Written with escapes, and in another normalization form.
      named('jose\u0301 "x"@scatterholt.com', 4),
      // Breaks the schema: theirs is not quarantined.
      named('JOS\u00c9 "X"@scatterholt.com', 5, { domain: 7 }),
      named('cy@quillmere.net', 6, { domain: 7 }),
      // A repetition of a dropped item is no second one.
      named('Ada.Loam@scatterholt.com', 1),
    ]
    const plan = decodeSettings({
      identity,
      suppress: suppress('ada.loam@scatterholt.com', 'jos\u00e9 "x"@scatterholt.com'),
    })
    const { read, plain } = readersOf(plan)
    const body = response(items)
    const pages = [read(body, pageContext()), plain(body, pageContext())]
    for (const page of pages) {
      expect(page).not.toBe(null)
      expect(rowsOf(page!).map(({ id }) => id)).toEqual([2])
      expect(page!.forgotten).toEqual([1, 3, 4, 5].map(micros))
      expect(page!.quarantined.map(({ id }) => id)).toEqual([6])
      expect(page).toMatchObject({ rows: 1, items: 7, repeated: 1 })
      expect(Array.from(page!.ids.rows).filter((_, i) => i % 2 === 0)).toEqual([1, 2, 3, 4])
      expect(Array.from(page!.ids.rejected).filter((_, i) => i % 2 === 0)).toEqual([5, 6])
    }
    // The position of the page covers them: a chain that restarts does not get them again.
    expect(pages[0]!.span).toEqual(pages[1]!.span)
  },
)

it('identities are compared without case, white space around them and form of accents, and otherwise exactly', () => {
  const same = ['jos\u00e9@a.com', 'JOSE\u0301@A.COM', '\tJos\u00e9@a.com \r']
  expect(new Set(same.map(filedIdentity)).size).toBe(1)
  const others = [
    ...['jose@a.com', 'jos\u00e9@a.co', 'jos\u00e9 @a.com', '', 'stra\u00dfe', 'strasse', 'a\0', 'a'],
  ]
  expect(new Set([...same, ...others].map(filedIdentity)).size).toBe(9)
  // Of a lone surrogate and of a NUL files hold U+FFFD.
  expect(filedIdentity('a\ud800')).toBe(filedIdentity('a\0'))
})

it('a digest needs the key', () => {
  const [one, other] = [KEY, Buffer.alloc(32, 2)].map((key) => suppressionDigest(key, 'ada@a.com'))
  expect(one).toMatch(/^[0-9a-f]{64}$/)
  expect(other).not.toBe(one)
})
