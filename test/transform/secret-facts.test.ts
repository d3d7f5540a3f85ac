import fc from 'fast-check'
import { expect, it } from 'vitest'
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

it('the kind is digest where the type or the form says so, else plain', () => {
  for (const type of 'md5 MD5 sha1 SHA256 bcrypt md5crypt NTLM lm argon2id pbkdf2 mssql'.split(' '))
    expect(facts('sunflower-42', type), type).toEqual(['digest', null])
  for (const type of PLAIN_TYPES) expect(facts('sunflower-42', type), String(type)).toEqual(['plain', true])
  for (const [name, digest] of Object.entries(DIGESTS))
    for (const text of [digest, ` ${digest}\r\n`])
      expect(facts(text, 'plain'), name).toEqual(['digest', null])
  for (const name of BOUNDED) {
    const digest = DIGESTS[name]!
    for (const other of [`${digest}_`, `?${digest}`, digest.slice(0, -9)])
      expect(facts(other)[0], name).toBe('plain')
  }
  for (const hash of PLAIN_FORMS) expect(facts(hash)[0], hash).toBe('plain')
})

const PLAIN_TYPES = [
  ...[null, 'unknown', 'plain', 'plaintext', 'cleartext', 'none', '', 'shadow'],
  ...['decrypted', 'dehashed', 'unhashed', 'unsalted', 'salted', 'hash', 'md5 (cracked)', 'SHA-1'],
]

/** Plain with anything before or after them, or cut short. */
const BOUNDED = [
  ...['sha1 in hex', 'passlib bcrypt', 'passlib md5_crypt', 'passlib sha512_crypt', 'passlib apr_md5_crypt'],
  ...['passlib phpass', 'passlib ldap_md5', 'passlib ldap_sha1', 'passlib mssql2000', 'passlib mysql41'],
  ...['WordPress 6.8', 'Drupal 7', 'Django sha1', 'ASP.NET Identity 3', 'libcrypt $y$'],
]

const PLAIN_FORMS = [
  ...['0aF'.repeat(11), `${'0'.repeat(31)}g`],
  ...['$2x$10$abc', '$2b', '$', '{ssha}x', ' $1$x', 'p', `*${'0A'.repeat(19)}`, `*${'0A'.repeat(20)}B`],
  ...['$S$unshine2024!Xy', '$H$elloWorld2024!', '$1$MillionDollars!', 'pbkdf2IsMyFavourite!1', '{SHA}x='],
  ...['$argon2id$v=19', '$6$salt$x', '$2a$10$abc', '{SSHA}loves-Me-Forever-And-Ever!'],
]

const POLICIES = [
  ...[
    { minLength: 1, classes: 1 },
    { minLength: 4, classes: 2 },
  ],
  ...[
    { minLength: 9, classes: 3 },
    { minLength: 14, classes: 4 },
  ],
]

it('both readers tell what the documentation says, of any secret and under every policy', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('a', 'B', '7', '-', 'É', 'ß', '🚀', '"', '\n'), maxLength: 16 }),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF'), minLength: 31, maxLength: 41 }),
    fc.constantFrom('$2a$', '$5$x', '{SSHA}', '$P$B', `*${'0A'.repeat(20)}`, '\ud83d'),
  )
  const item = fc.record({ hash: fc.option(text), hash_type: fc.constantFrom(null, 'md5', 'unknown') })
  // A reader is dear, and serves many pages.
  const plans = SECRET_POLICY_NAMES.flatMap((secret) =>
    POLICIES.map((policy) => ({
      policy,
      readers: readersOf(decodeSettings({ secret, secretFacts: { policy } })),
    })),
  )
  fc.assert(
    fc.property(fc.array(item, { maxLength: 40, size: 'max' }), fc.constantFrom(...plans), (items, plan) => {
      const { policy, readers } = plan
      const body = response(items.map((each, id) => credential({ id, ...each })))
      const wanted = items.map(({ hash, hash_type }) => expected(hash, hash_type, { policy }))
      for (const decode of Object.values(readers)) {
        const rows = rowsOf(decode(body, pageContext())!)
        expect(rows.map((row) => [row.secret_kind, row.secret_meets_policy])).toEqual(wanted)
      }
    }),
    { numRuns: cases(600, 80) },
  )
})
