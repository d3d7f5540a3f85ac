import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { IdentityPolicy, SecretPolicy } from '../../src/core/index.ts'
import { looksMasked, maskedQueryValue, normalIdentity } from '../../src/transform/index.ts'
import { cases } from '../support/thorough.ts'
import { credential, decodedRows } from './credentials.ts'
import { decodeSettings } from './plans.ts'

const MASK_KEY = Buffer.from('a key of thirty-two bytes or more')
const RUNS = { numRuns: cases(300, 30) }
const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }))

function masked(secret: SecretPolicy, ...values: readonly (string | null)[]): readonly unknown[] {
  return decodedRows(
    values.map((hash) => credential({ hash })),
    { secret, maskKey: MASK_KEY },
  ).map((row) => row.hash)
}

const hmac = (text: string): string => createHmac('sha256', MASK_KEY).update(text).digest('hex')

test.each<[SecretPolicy, (text: string) => string]>([
  ['redact', () => '[REDACTED]'],
  ['hmac', hmac],
  [
    'partial',
    (text) => {
      const points = [...text]
      return points.length < 6 ? '[REDACTED]' : `${points[0]}****${points.at(-1)}`
    },
  ],
])('a secret under %s, also a repeated one', (policy, of) => {
  const some = ['', ...[4095, 4096, 4097, 65_536].map((length) => 'x'.repeat(length))]
  const wanted = some.map(of)
  expect(masked(policy, ...some, null, ...some)).toEqual([...wanted, null, ...wanted])
  fc.assert(
    fc.property(anyText, (text) => {
      const shown = of(text.toWellFormed())
      expect(masked(policy, text, text)).toEqual([shown, shown])
    }),
    RUNS,
  )
})

describe('identity policies', () => {
  test('hmac is HMAC-SHA256 of `identity:` and the normal form, whatever the string', () => {
    const long = 'x'.repeat(65_536)
    fc.assert(
      fc.property(fc.oneof(anyText, fc.constant(long)), (identity_name) => {
        const [row] = decodedRows([credential({ identity_name })], { identity: 'hmac', maskKey: MASK_KEY })
        expect(row!.identity_name).toBe(hmac(`identity:${normalIdentity(identity_name)}`))
      }),
      RUNS,
    )
  })

  test('hmac without a key is refused at once', () => {
    expect(() => decodedRows([], { identity: 'hmac', maskKey: null })).toThrow(
      expect.objectContaining({ kind: 'config' }),
    )
  })
})

test.each(['none', 'PLAINTEXT', 'Redact', '', undefined, null, 7])(
  'an unknown policy, such as %j, decodes nothing',
  (policy) => {
    const refused = expect.objectContaining({ kind: 'config' })
    const run = (plan: object) => () => decodedRows([credential()], { maskKey: MASK_KEY, ...plan })
    expect(run({ secret: policy })).toThrow(refused)
    expect(run({ identity: policy })).toThrow(refused)
    // Also if the other policy hides the identity.
    expect(run({ secret: policy, identity: 'drop' })).toThrow(refused)
  },
)

describe('the value of a query', () => {
  const policies = (secret: SecretPolicy, identity: IdentityPolicy = 'keep') =>
    decodeSettings({ secret, identity, maskKey: MASK_KEY })

  test('is shown as given, unless it is a secret or a hidden identity', () => {
    for (const identity of ['keep', 'hmac', 'drop'] as const) {
      for (const type of ['domain', 'auth_domain'] as const) {
        expect(maskedQueryValue({ type, fqdn: 'a.example' }, null, policies('hmac', identity))).toBe(
          'a.example',
        )
      }
    }
    for (const secret of ['redact', 'drop', 'partial', 'hmac', 'plaintext'] as const) {
      expect(maskedQueryValue({ type: 'email', email: 'a@b.example' }, null, policies(secret))).toBe(
        'a@b.example',
      )
      expect(maskedQueryValue({ type: 'keyword', keyword: 'ada' }, null, policies(secret))).toBe('ada')
    }
  })

  test('is masked like the identities of its rows if it is one, whatever the name of the query', () => {
    fc.assert(
      fc.property(anyText, fc.constantFrom({}, { as: 'case-17' }), (text, as) => {
        for (const query of [
          { type: 'email', email: text, ...as },
          { type: 'keyword', keyword: text, ...as },
        ] as const) {
          const hidden = maskedQueryValue(query, null, policies('plaintext', 'hmac'))
          expect(hidden).toBe(hmac(`identity:${normalIdentity(text)}`))
          const plan = { identity: 'hmac', maskKey: MASK_KEY } as const
          expect(decodedRows([credential({ identity_name: text })], plan)[0]!.identity_name).toBe(hidden)
          expect(maskedQueryValue(query, null, policies('plaintext', 'drop'))).toBe('[REDACTED]')
        }
      }),
      { numRuns: cases(100, 25) },
    )
  })

  test('is masked like the secret itself if it is one', () => {
    const value = (secret: SecretPolicy) =>
      maskedQueryValue({ type: 'secret', secretEnv: 'LEAKED' }, 'sunflower-42', policies(secret))
    expect(value('redact')).toBe('[REDACTED]')
    expect(value('drop')).toBe('[REDACTED]')
    expect(value('partial')).toBe('s****2')
    expect(value('hmac')).toBe(hmac('sunflower-42'))
    expect(value('plaintext')).toBe('sunflower-42')
  })
})

describe('checking stored values', () => {
  test('the output of a policy passes as masked', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<SecretPolicy>('redact', 'partial', 'hmac', 'plaintext'),
        fc.option(anyText),
        (policy, text) => {
          const [value] = masked(policy, text)
          expect(looksMasked(policy, value as string | null)).toBe(true)
        },
      ),
      RUNS,
    )
  })

  test('the output of an identity policy passes as well', () => {
    expect(looksMasked('keep', 'a@b.example')).toBe(true)
    for (const policy of ['hmac', 'drop'] as const) expect(looksMasked(policy, 'a@b.example')).toBe(false)
    expect(looksMasked('hmac', hmac('identity:a@b.example'))).toBe(true)
    expect(looksMasked('drop', '[REDACTED]')).toBe(true)
  })

  test('only null passes under an unknown policy', () => {
    for (const policy of ['none', 'PLAINTEXT', '', undefined]) {
      for (const value of ['sunflower-42', '[REDACTED]', 'a'.repeat(64)])
        expect(looksMasked(policy as SecretPolicy, value)).toBe(false)
      expect(looksMasked(policy as SecretPolicy, null)).toBe(true)
    }
  })

  test('an unmasked secret does not pass', () => {
    for (const policy of ['redact', 'drop', 'partial', 'hmac'] as const) {
      for (const secret of [
        'sunflower-42',
        '',
        's****22',
        'A'.repeat(64),
        `${'a'.repeat(64)}\n`,
        '[REDACTED]\n',
      ]) {
        expect(looksMasked(policy, secret)).toBe(false)
      }
    }
  })
})
