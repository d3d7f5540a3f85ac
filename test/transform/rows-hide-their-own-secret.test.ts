import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DecodeSettings } from '../../src/rows/index.ts'
import { KNOWN_EXTRAS } from '../../src/rows/index.ts'
import { CODES, FORMS, HARD_SECRETS, unpleasantSecret } from '../support/quotations.ts'
import { cases, some } from '../support/thorough.ts'
import { isEqual } from './agreement.ts'
import { credential, source } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, type Row, rowsOf } from './plans.ts'

function pageOf(
  items: readonly object[],
  plan: Partial<DecodeSettings> = {},
  written: (item: object) => string = JSON.stringify,
) {
  const readers = readersOf(decodeSettings({ extras: KNOWN_EXTRAS, ...plan }))
  const body = Buffer.from(`{"items":[${items.map((item) => written(item))}],"next":null}`)
  expect(isEqual(readers, body, pageContext())).toBe(true)
  const page = readers.read(body, pageContext())
  return { ...page, table: rowsOf(page) as readonly Row[] }
}

function rowOf(item: Readonly<Record<string, unknown>>, plan: Partial<DecodeSettings> = {}): Row {
  const [row] = pageOf([credential(item)], plan).table
  return row!
}

/** An item that quotes a text wherever a text may be. */
function quoting(text: string, hash: string, id = 1) {
  return credential({
    id,
    hash,
    domain: text,
    known_password_id: text,
    hash_type: text,
    event_uid: text,
    urls: ['https://a.test', text],
    auth_domains: [text],
    source: source({ name: text, url: text, pii_tags: [text, 'b'] }),
  })
}

const url = (secret: string) => `https://u1:${secret}@shop.test/a`

test.each([
  ['redact', '[REDACTED]'],
  ['drop', '[REDACTED]'],
  ['partial', 'T****3'],
  ['hmac', /^https:\/\/u1:[0-9a-f]{64}@shop\.test\/a$/],
] as const)('a URL loses the password of its row and nothing else: %s', (secret, masked) => {
  const { urls } = rowOf({ hash: 'Tr0ub4dor&3', urls: [url('Tr0ub4dor&3'), 'https://b.test'] }, { secret })
  const expected = typeof masked === 'string' ? url(masked) : expect.stringMatching(masked)
  expect(urls).toEqual([expected, 'https://b.test'])
})

test('under plaintext nothing changes', () => {
  const row = rowOf({ hash: 'Tr0ub4dor&3', urls: [url('Tr0ub4dor&3')] }, { secret: 'plaintext' })
  expect(row.urls).toEqual([url('Tr0ub4dor&3')])
})

const LONG_ENOUGH = HARD_SECRETS.filter((secret) => secret.length >= 4)

function expectHidden(secret: string, ascii: boolean): void {
  const forms = Object.entries(Buffer.byteLength(secret.toWellFormed()) < 4 ? FORMS : { ...FORMS, ...CODES })
  const items = forms.map(([, quote], i) => quoting(`pw: ${quote(secret)} 2024`, secret, i))
  const written = (item: object) =>
    ascii
      ? JSON.stringify(item).replace(
          /[^\0-~]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        )
      : JSON.stringify(item).replaceAll('/', '\\/')
  const { table } = pageOf(items, {}, written)
  for (const [i, row] of table.entries()) {
    const text = `pw: ${forms[i]![1](secret)} 2024`
    const message = `${forms[i]![0]}: ${JSON.stringify(secret)}`
    const kept = (texts: readonly unknown[]) => texts.flat().filter((each) => each === text.toWellFormed())
    const { domain, known_password_id, hash_type, event_uid, urls, auth_domains } = row
    expect(kept([domain, known_password_id, hash_type, event_uid, urls, auth_domains]), message).toEqual([])
    const isCode = i >= Object.keys(FORMS).length
    const ofSource = [row.source_name, row.source_url, row.source_pii_tags]
    if (isMixed(secret) && !isCode) expect(kept(ofSource), message).toEqual([])
  }
}

/** In texts of a source ordinary words stay. */
function isMixed(secret: string): boolean {
  return /\p{L}[^\s+]*\p{N}|\p{N}[^\s+]*\p{L}/u.test(secret)
}

test.each(some(LONG_ENOUGH, 10))(
  'a secret is found in every text of its row, however it is spelled: %j',
  (secret) => {
    expectHidden(secret, false)
    expectHidden(secret, true)
  },
)

test('so is any other secret', () => {
  fc.assert(
    fc.property(unpleasantSecret, fc.boolean(), (secret, ascii) => expectHidden(secret, ascii)),
    { numRuns: cases(600, 25) },
  )
})

test('what stands around a secret stays, in its plain, percent-encoded and JSON spellings', () => {
  const hash = 'p@ss/W%rd"1'
  const spelled = [
    hash,
    hash.toUpperCase(),
    encodeURIComponent(hash),
    JSON.stringify(hash).slice(1, -1),
    '\\u0070@ss\\/W%rd\\"1',
  ]
  expect(rowOf({ hash, urls: spelled.map(url) }).urls).toEqual(spelled.map(() => url('[REDACTED]')))
  // Of a code nothing is left.
  expect(rowOf({ hash, urls: [url(Buffer.from(`u1:${hash}`).toString('base64'))] }).urls).toEqual([
    '[REDACTED]',
  ])
})

test('one character is no search term, and fewer than four are only as a whole', () => {
  for (const hash of ['', 'a', 's'])
    expect(rowOf({ hash, urls: ['a', 's', 'https://a.test'] }).urls).toEqual(['a', 's', 'https://a.test'])
  expect(rowOf({ hash: 'abc', urls: ['abc', 'ABC', 'https://abc.test', '%61bc'] }).urls).toEqual([
    '[REDACTED]',
    '[REDACTED]',
    'https://abc.test',
    '[REDACTED]',
  ])
})

test('an identity stays, unless a line with the secret was taken for one', () => {
  const shown = (identity_name: string, hash: string) => rowOf({ identity_name, hash }).identity_name
  expect(shown('hunter2@acme.test', 'hunter2')).toBe('hunter2@acme.test')
  expect(shown('hunter2@acme.test', 'hunter2@acme.test')).toBe('hunter2@acme.test')
  expect(shown('ann@acme.test:hunter2', 'hunter2')).toBe('ann@acme.test:[REDACTED]')
  expect(shown('ann@acme.test;Hunter2', 'hunter2')).toBe('ann@acme.test;[REDACTED]')
  expect(shown('https://a.test|ann|hunter%32', 'hunter2')).toBe('https://a.test|ann|[REDACTED]')
})

test('a domain stays that the identity or the query tells anyway', () => {
  const shown = (domain: string, identity_name: string, hash: string) =>
    rowOf({ domain, identity_name, hash }).domain
  expect(shown('acme.test', 'ann@acme.test', 'acme')).toBe('acme.test')
  // The query of the page.
  expect(shown('scatterholt.com', 'ann', 'scatterholt')).toBe('scatterholt.com')
  expect(shown('hunter2.test', 'ann@acme.test', 'hunter2')).toBe('[REDACTED].test')
})

test('texts of a source, which all its rows have, keep ordinary words and numbers', () => {
  const shown = (name: string, hash: string) => rowOf({ hash, source: source({ name }) }).source_name
  expect(shown('LinkedIn 2012', 'linkedin')).toBe('LinkedIn 2012')
  expect(shown('LinkedIn 2012', '2012')).toBe('LinkedIn 2012')
  expect(shown('Stealer of hunter2', 'hunter2')).toBe('Stealer of [REDACTED]')
})

test('no name of a field tells the secret, and a null has none', () => {
  const { unknownFields } = pageOf([
    credential({ hash: 'hunter2', hunter2: 1, HUNTER2_x: 1, source: source({ 'hunter2.a': 1 }) }),
    credential({ id: 2, hash: null, score: 1 }),
  ])
  expect(unknownFields).toEqual({ '…': 3, score: 1 })
})

test('quarantine hides the secret of an item as well, in whatever form the item has it', () => {
  for (const hash of ['hunter2-81', ['hunter2-81'], { a: 'hunter2-81' }, 918_273_645]) {
    const text = typeof hash === 'number' ? String(hash) : 'hunter2-81'
    const item = {
      ...quoting(url(text), 'x'),
      hash,
      identity_name: `ann:${text}`,
      id: 'no',
      [text]: 1,
      source: null,
    }
    const { quarantined } = pageOf([item])
    expect(JSON.stringify(quarantined)).not.toContain(text)
    expect(quarantined[0]!.item).toMatchObject({
      urls: ['https://a.test', url('[REDACTED]')],
      identity_name: 'ann:[REDACTED]',
    })
  }
})
