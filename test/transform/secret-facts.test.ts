import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SECRET_POLICY_NAMES, type SecretFacts } from '../../src/core/index.ts'
import { cases } from '../support/thorough.ts'
import { credential, decodedRows, response } from './credentials.ts'
import { DIGESTS } from './digests.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'

const AD: SecretFacts = { policy: { minLength: 12, classes: 3 } }

type Facts = readonly [kind: string | null, meets: boolean | null]

function facts(hash: string | null, hash_type: string | null = null, secretFacts = AD): Facts {
  const [row] = decodedRows([credential({ hash, hash_type })], { secretFacts })
  return [row!.secret_kind as string | null, row!.secret_meets_policy as boolean | null]
}

/** As the documentation says it, in other words than the code; of forms only those that are made up below. */
function expected(hash: string | null, hashType: string | null, { policy }: SecretFacts): Facts {
  if (hash === null) return [null, null]
  if (hash === '') return ['empty', null]
  if (hashType === 'md5' || /^[0-9a-f]{32}$|^[0-9a-f]{40}$|^\*[0-9a-f]{40}$/i.test(hash))
    return ['digest', null]
  const points = Array.from(hash.toWellFormed())
  const classes = new Set(
    points.map((point) =>
      /\p{Lu}/u.test(point)
        ? 'upper'
        : /\p{Ll}/u.test(point)
          ? 'lower'
          : /\d/.test(point)
            ? 'digit'
            : 'other',
    ),
  )
  return ['plain', points.length >= policy.minLength && classes.size >= policy.classes]
}

describe('the kind of a secret', () => {
  it.each('md5 MD5 sha1 SHA256 bcrypt md5crypt NTLM lm argon2id pbkdf2 mssql'.split(' '))(
    'is digest where the type says so: %s',
    (type) => {
      expect(facts('sunflower-42', type)).toEqual(['digest', null])
    },
  )

  it.each([
    ...[null, 'unknown', 'plain', 'plaintext', 'cleartext', 'none', '', 'shadow'],
    ...['decrypted', 'dehashed', 'unhashed', 'unsalted', 'salted', 'hash', 'md5 (cracked)', 'SHA-1'],
  ])('is plain where it does not: %s', (type) => {
    expect(facts('sunflower-42', type)).toEqual(['plain', true])
  })

  it.each(Object.entries(DIGESTS))('is digest by its form: %s', (_, digest) => {
    for (const text of [digest, ` ${digest}\r\n`]) expect(facts(text, 'plain')).toEqual(['digest', null])
  })

  it.each([
    ...[
      'sha1 in hex',
      'passlib bcrypt',
      'passlib md5_crypt',
      'passlib sha512_crypt',
      'passlib apr_md5_crypt',
    ],
    ...['passlib phpass', 'passlib ldap_md5', 'passlib ldap_sha1', 'passlib mssql2000', 'passlib mysql41'],
    ...['WordPress 6.8', 'Drupal 7', 'Django sha1', 'ASP.NET Identity 3', 'libcrypt $y$'],
  ])('is plain where something stands before or after it, or lacks: %s', (name) => {
    const digest = DIGESTS[name]!
    for (const other of [`${digest}_`, `?${digest}`, digest.slice(0, -9)])
      expect(facts(other)[0]).toBe('plain')
  })

  it.each([
    '0aF'.repeat(11),
    `${'0'.repeat(31)}g`,
    ...['$2x$10$abc', '$2b', '$', '{ssha}x', ' $1$x', 'p', `*${'0A'.repeat(19)}`, `*${'0A'.repeat(20)}B`],
    ...['$S$unshine2024!Xy', '$H$elloWorld2024!', '$1$MillionDollars!', 'pbkdf2IsMyFavourite!1', '{SHA}x='],
    ...['$argon2id$v=19', '$6$salt$x', '$2a$10$abc', '{SSHA}loves-Me-Forever-And-Ever!'],
  ])('is plain by its form: %s', (hash) => {
    expect(facts(hash)[0]).toBe('plain')
  })
})

it('both readers tell what the documentation says, of any secret and under every policy', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('a', 'B', '7', '-', 'É', 'ß', '🚀', '"', '\n'), maxLength: 16 }),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF'), minLength: 31, maxLength: 41 }),
    fc.constantFrom('$2a$', '$5$x', '{SSHA}', '$P$B', `*${'0A'.repeat(20)}`, '\ud83d'),
  )
  const item = fc.record({ hash: fc.option(text), hash_type: fc.constantFrom(null, 'md5', 'unknown') })
  fc.assert(
    fc.property(
      fc.array(item, { maxLength: 8 }),
      fc.constantFrom(...SECRET_POLICY_NAMES),
      fc.record({ minLength: fc.integer({ min: 1, max: 14 }), classes: fc.integer({ min: 1, max: 4 }) }),
      (items, secret, policy) => {
        const body = response(items.map((each, id) => credential({ id, ...each })))
        const { read, plain } = readersOf(decodeSettings({ secret, secretFacts: { policy } }))
        const wanted = items.map(({ hash, hash_type }) => expected(hash, hash_type, { policy }))
        for (const decode of [read, plain]) {
          const rows = rowsOf(decode(body, pageContext())!)
          expect(rows.map((row) => [row.secret_kind, row.secret_meets_policy])).toEqual(wanted)
        }
      },
    ),
    { numRuns: cases(3000, 300) },
  )
})
