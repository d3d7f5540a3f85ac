import { domainToASCII } from 'node:url'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addressesIn } from '../../src/data-set/commands/match/identities.ts'
import { normalIdentity } from '../../src/transform/index.ts'
import { normalizePlain } from '../../src/transform/mask/normal-form.ts'
import { RowTexts } from '../../src/transform/row-texts.ts'
import { cases } from '../support/thorough.ts'

const same: readonly (readonly [form: string, ...spellings: string[]])[] = [
  [
    'ada.loam@scatterholt.com',
    'Ada.Loam@SCATTERHOLT.com',
    ' ada.loam@scatterholt.com\t\r\n',
    '\u00a0ADA.LOAM@scatterholt.com\u3000',
  ],
  ['jos\u00e9@a.com', 'jose\u0301@a.com', 'JOS\u00c9@A.com', 'JOSE\u0301@A.COM '],
  [
    'ada@xn--mnchen-3ya.de',
    'ada@m\u00fcnchen.de',
    'Ada@MU\u0308NCHEN.DE',
    'ADA@XN--MNCHEN-3YA.DE',
    'ada@m\u00fcnchen\u3002de',
  ],
  ['ada@xn--strae-oqa.de', 'ada@stra\u00dfe.de', 'ada@STRA\u1e9eE.de'],
  ['\u03bf\u03b4\u03bf\u03c3@a.gr', '\u039f\u0394\u039f\u03a3@a.gr', '\u03bf\u03b4\u03bf\u03c2@a.gr'],
  ['i\u0307stanbul@a.com', '\u0130stanbul@a.com', 'I\u0307STANBUL@A.COM'],
  ['a@xn--pxavbq.gr', 'a@ΟΔΟΣ.GR', 'a@οδοσ.gr'],
  ['jdoe', 'JDoe', ' jdoe '],
  ['', ' ', '\t', '\u200b', 'mailto:'],
  // Characters that nobody sees, a scheme, and the root of a domain.
  [
    'ada@x.com',
    '\u200eada@x.com',
    'a\u00adda@x.com\u202c',
    '\u202aada@x\u200b.com',
    '\ufeffada@x.com',
    'mailto:Ada@x.com',
    ' MailTo: ada@x.com.',
    'mailto:mailto:ada@x.com',
    'ada@x.com. ',
    'ada@x.com..',
  ],
  ['a@xn--mnchen-3ya.de', 'a@m\u00fcnchen.de\u3002', 'a@xn--mnchen-3ya.de.'],
  ['a@xn--53h.com', 'a@\u2615.com', 'A@XN--53H.com.', 'a@\u2615\ufe0f\u3002com'],
  // A joiner that its script needs shows in punycode alone.
  ['a@xn--10cl1a0b.com', 'a@\u0dc1\u0dca\u200d\u0dbb\u0dd3.com', 'a@xn--10cl1a0b660p.com'],
  ['a@0x7f.1', 'a@\uff10x7f.1', 'a@0x7f.1. '],
]

it.each(same)('%s is the form of its spellings', (form, ...spellings) => {
  for (const text of [form, ...spellings]) expect(normalIdentity(text)).toBe(form)
})

it.each([
  ['stra\u00dfe@a.de', 'strasse@a.de'],
  ['\u0131@a.com', 'i@a.com'],
  // Of two registered domains, by IDNA of 2008.
  ['a@οδοσ.gr', 'a@οδος.gr'],
  ['a+b@x.com', 'a@x.com'],
  ['a b@x.com', 'ab@x.com'],
  ['smtp:a@x.com', 'a@x.com'],
  // What is no host name is kept whole.
  ['a@\u00e4.com/x', 'a@\u00e4.com'],
  ['a@%61\u00e4.com', 'a@a\u00e4.com'],
  ['a@\uff10x7f.1', 'a@127.0.0.1'],
  ['xn--mnchen-3ya.de', 'm\u00fcnchen.de'],
])('nothing else is the same: %s, %s', (a, b) => {
  expect(normalIdentity(a)).not.toBe(normalIdentity(b))
})

const label = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom('xn--mnchen-3ya', 'XN--4CA', 'xn--', 'm\u00fcnchen', 'stra\u00dfe', '0x1', '\u2168'),
)
const anyIdentity = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.tuple(label, label, label).map(([name, a, b]) => `${name}@${a}.${b}`),
)

it('is the form of itself, of every case that lower and upper letters have, and of both normalization forms', () => {
  fc.assert(
    fc.property(anyIdentity, (text) => {
      const form = normalIdentity(text)
      expect(normalIdentity(form)).toBe(form)
      expect(normalIdentity(text.toWellFormed().normalize('NFD'))).toBe(form)
      expect(normalIdentity(` ${text}\n`)).toBe(form)
      expect(normalIdentity(`\u200b${text}\u2060`)).toBe(form)
    }),
    { numRuns: cases(5000, 500) },
  )
})

it('a domain and its ASCII form by UTS 46 are one', () => {
  const letter = fc.oneof(
    fc.constantFrom(
      '\u2615',
      '\ufe0f',
      '\u200d',
      '\u00ad',
      '\u1f44d',
      '\u{1f468}',
      '\u00df',
      '\u03c2',
      '_',
      '-',
    ),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
  )
  const name = fc.array(letter, { minLength: 1, maxLength: 6 }).map((letters) => letters.join(''))
  fc.assert(
    fc.property(name, fc.constantFrom('', '.', '\u3002'), (text, end) => {
      fc.pre(!/[\s%/?#\\@]/.test(text.normalize('NFKC')))
      const ascii = domainToASCII(`${text}.com`)
      fc.pre(ascii !== '')
      expect(normalIdentity(`a@${text}.com${end}`)).toBe(normalIdentity(`a@${ascii}`))
    }),
    { numRuns: cases(5000, 500) },
  )
})

it('every character has one form, also as a domain', () => {
  for (let point = 1; point < 0x11_0000; point += cases(1, 11)) {
    if (point >= 0xd800 && point < 0xe000) continue
    const character = String.fromCodePoint(point)
    for (const text of [`${character}x`, `x${character}`, `a@x${character}.de`]) {
      const form = normalIdentity(text)
      if (normalIdentity(form) !== form) expect.fail(`U+${point.toString(16)}`)
    }
  }
})

it('plain bytes become the same form in place; of others at most the case of letters changes', () => {
  const ascii = fc.string({ unit: fc.constantFrom('mailto', 'MAILTO:', ...'aZxXnN-@. ~!:'), maxLength: 12 })
  fc.assert(
    fc.property(fc.oneof(anyIdentity, ascii), fc.nat(3), (text, start) => {
      const bytes = Buffer.from(`${'#'.repeat(start)}${text}-n`)
      const end = bytes.length - 2
      const isPlain = normalizePlain(bytes, start, end)
      const after = bytes.toString('utf8', start, end)
      if (isPlain) expect(after).toBe(normalIdentity(text))
      else expect(normalIdentity(after)).toBe(normalIdentity(text))
      expect(bytes.toString('utf8', end)).toBe('-n')
    }),
    { numRuns: cases(5000, 500) },
  )
})

it('long runs of dots, blanks and separators take no more time than other texts', () => {
  const long = `é@x${'.'.repeat(1_000_000)}x`
  expect(normalIdentity(long)).toHaveLength(long.length)
  expect(addressesIn(`a@x${'!'.repeat(1_000_000)}x`)).toEqual({ found: [], unread: 1 })
  expect(addressesIn(`${'+a'.repeat(500_000)}@x.test`).found).toHaveLength(1)
  const texts = new RowTexts({ secret: 'redact', identity: 'keep' })
  expect(texts.identity('a:'.repeat(500_000), 'a').length).toBeLessThan(1_000_000)
  expect(texts.url(`x${'@'.repeat(1_000_000)}`)).toBe('')
})
