import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SecretPolicy } from '../../src/core/index.ts'
import { looksMasked, maskedQueryValue } from '../../src/transform/index.ts'
import { DIGEST_LENGTH, keyedDigest } from '../../src/transform/keyed-digest.ts'
import { credential, decodedRows } from './credentials.ts'
import { decodePlan } from './plans.ts'

const MASK_KEY = Buffer.from('a key of thirty-two bytes or more')
const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }))

/** What a secret becomes in the `hash` column. */
function masked(secret: SecretPolicy, ...values: readonly (string | null)[]): readonly unknown[] {
  return decodedRows(
    values.map((hash) => credential({ hash })),
    { secret, maskKey: MASK_KEY },
  ).map((row) => row.hash)
}

function hmac(text: string): string {
  return createHmac('sha256', MASK_KEY).update(text).digest('hex')
}

describe('secret policies', () => {
  test('redact leaves the constant, and null where there was no secret', () => {
    expect(masked('redact', 'sunflower-42', '', null)).toEqual(['[REDACTED]', '[REDACTED]', null])
    expect(masked('redact', 'sunflower-42')).toEqual(['[REDACTED]'])
    expect(masked('redact', null)).toEqual([null])
  })

  test('drop leaves no column', () => {
    const [row] = decodedRows([credential()], { secret: 'drop' })
    expect(Object.keys(row!)).not.toContain('hash')
    expect(JSON.stringify(row)).not.toContain('sunflower-42')
  })

  test('partial keeps the first and the last code point of six or more', () => {
    expect(masked('partial', 'sunflower-42', '123456', '12345', '', null)).toEqual([
      's****2',
      '1****6',
      '[REDACTED]',
      '[REDACTED]',
      null,
    ])
    expect(masked('partial', '🚀bcde🧵', '🚀🚀🚀🚀🚀', 'é2345ß')).toEqual([
      '🚀****🧵',
      '[REDACTED]',
      'é****ß',
    ])
  })

  test('partial counts as JavaScript counts code points', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const points = [...text.toWellFormed()]
        const expected = points.length < 6 ? '[REDACTED]' : `${points[0]}****${points.at(-1)}`
        expect(masked('partial', text)).toEqual([expected])
      }),
    )
  })

  test('hmac is HMAC-SHA256 of the UTF-8 text in hex, whether it repeats or not', () => {
    const long = 'x'.repeat(65_536)
    expect(masked('hmac', 'tea', 'tea', '', null, long, long)).toEqual([
      hmac('tea'),
      hmac('tea'),
      hmac(''),
      null,
      hmac(long),
      hmac(long),
    ])
    fc.assert(
      fc.property(anyText, (text) => {
        expect(masked('hmac', text, text)).toEqual([hmac(text.toWellFormed()), hmac(text.toWellFormed())])
      }),
    )
  })

  test('hmac is what node:crypto says for every length around a block, wherever the text stands, and any key', () => {
    const keys = fc.uint8Array({ minLength: 32, maxLength: 200 })
    const text = fc.uint8Array({ maxLength: 140 })
    fc.assert(
      fc.property(keys, text, fc.nat(9), (key, text, start) => {
        const bytes = Buffer.alloc(start + 140 + DIGEST_LENGTH, 0xff)
        bytes.set(text, start)
        const end = keyedDigest(key)(bytes, start, start + text.length)
        expect(bytes.toString('latin1', start, end)).toBe(
          createHmac('sha256', key).update(text).digest('hex'),
        )
        expect(bytes.subarray(0, start).every((byte) => byte === 0xff)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  test('plaintext keeps the text, with lone surrogates replaced', () => {
    expect(masked('plaintext', 'a\ud83dz', '', '"\\\n', '🚀')).toEqual(['a\ufffdz', '', '"\\\n', '🚀'])
  })
})

describe('identity policies', () => {
  test('keep, hmac and drop', () => {
    const row = (identity: 'keep' | 'hmac' | 'drop') =>
      decodedRows([credential()], { identity, maskKey: MASK_KEY })[0]!
    expect(row('keep').identity_name).toBe('ada.loam@scatterholt.com')
    expect(row('hmac').identity_name).toBe(hmac('ada.loam@scatterholt.com'))
    expect(Object.keys(row('drop'))).not.toContain('identity_name')
  })

  test('hmac without a key is refused at once', () => {
    expect(() => decodedRows([], { identity: 'hmac', maskKey: null })).toThrow(
      expect.objectContaining({ kind: 'config' }),
    )
  })
})

describe('the value of a query', () => {
  const policies = (secret: SecretPolicy) => decodePlan({ secret, maskKey: MASK_KEY })

  test('is shown as given, unless it is a secret', () => {
    expect(maskedQueryValue({ type: 'domain', fqdn: 'a.example' }, null, policies('hmac'))).toBe('a.example')
    expect(maskedQueryValue({ type: 'email', email: 'a@b.example' }, null, policies('drop'))).toBe(
      'a@b.example',
    )
    expect(maskedQueryValue({ type: 'keyword', keyword: 'ada' }, null, policies('redact'))).toBe('ada')
  })

  test('is masked like the secret itself where it is one', () => {
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
  test('what a policy made looks masked', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<SecretPolicy>('redact', 'partial', 'hmac', 'plaintext'),
        fc.option(anyText),
        (policy, text) => {
          const [value] = masked(policy, text)
          expect(looksMasked(policy, value as string | null)).toBe(true)
        },
      ),
    )
  })

  test('a secret as it was does not', () => {
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
