import { expect, test } from 'vitest'
import { int64 } from '../../src/core/index.ts'
import type { DecodeSettings, RejectedItem } from '../../src/rows/index.ts'
import { createDecoder } from '../../src/transform/index.ts'
import { credential, decode, source } from './credentials.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'

/** A value that no entry, message or row may show. */
const SECRET = 'sunflower-42'

function quarantined(item: unknown, plan: Partial<DecodeSettings> = {}): RejectedItem {
  const page = decode([credential(), item], plan)
  expect(page).toMatchObject({ rows: 1, items: 2 })
  expect(page.quarantined).toHaveLength(1)
  return page.quarantined[0]!
}

test('an entry has the position of its item; an issue says what was found by its kind and length, never by its value', () => {
  const item = credential({
    id: SECRET,
    imported_at: 'yesterday',
    domain: { a: SECRET, b: SECRET },
    hash: [SECRET],
    source: source({ is_alert_enabled: '', name: true, description_en: 7, leaked_at: '2024-02-30' }),
  })
  const { issues, ...entry } = quarantined({ ...item, identity_name: undefined })
  expect(Object.fromEntries(issues.map(({ path, found }) => [path, found]))).toEqual({
    id: 'string of 12 characters',
    imported_at: 'string of 9 characters',
    domain: 'object of 2 fields',
    hash: 'list of 1 element',
    'source.is_alert_enabled': 'string of 0 characters',
    'source.name': 'boolean',
    'source.description_en': 'number',
    'source.leaked_at': 'string of 10 characters',
    identity_name: 'nothing',
  })
  expect(quarantined(credential({ id: null })).issues).toMatchObject([{ path: 'id', found: 'null' }])
  expect(quarantined(SECRET).issues).toMatchObject([{ path: '', found: 'string of 12 characters' }])
  expect(JSON.stringify(issues)).not.toMatch(/sunflower|yesterday|2024-02-30/)
  expect(entry).toMatchObject({ at: null, index: 1, id: null })
})

test('an entry has the time of its item, which decides its window, if it can be parsed', () => {
  const at = (imported_at: unknown) => quarantined(credential({ id: null, imported_at })).at
  expect(at('2024-07-22T21:25:52.893439+02:00')).toBe(1_721_676_352_893_439)
  expect(at('1970-01-01')).toBe(0)
  // The nearest double.
  expect(at('9999-12-31T23:59:59.999999Z')).toBe(253_402_300_800_000_000)
  for (const none of [null, undefined, 5, '', 'soon', '2024-02-30', ['2024-07-22'], { at: '2024-07-22' }])
    expect(at(none)).toBeNull()
  for (const item of [SECRET, 42, null, ['2024-07-22']]) expect(quarantined(item).at).toBeNull()
})

test('public fields keep their values, the others do not', () => {
  const item = credential({
    id: 'x',
    credential_hash: SECRET,
    event_uid: 'uid-1',
    notes: { hash: SECRET },
    source: source({ url: 'https://a.example', owner: SECRET }),
    known_password_id: 17,
    auth_domains: ['a.example'],
    urls: ['https://b.example', { password: SECRET }],
    domain: { hash: SECRET },
  })
  const entry = quarantined(item)
  expect(entry.id).toBeNull()
  expect(entry.item).toEqual({
    ...item,
    id: '[REDACTED]',
    credential_hash: '[REDACTED]',
    notes: '[REDACTED]',
    hash: '[REDACTED]',
    domain: '[REDACTED]',
    urls: ['https://b.example', '[REDACTED]'],
    source: { ...source({ url: 'https://a.example' }), owner: '[REDACTED]' },
  })
  expect(JSON.stringify(entry)).not.toContain(SECRET)
})

test('a string in a field of another type is not shown: it may be the secret', () => {
  const source = { id: 's', is_alert_enabled: SECRET, breached_at: SECRET, leaked_at: SECRET }
  const item = credential({ id: SECRET, imported_at: SECRET, source, auth_domains: SECRET, urls: SECRET })
  const hidden = '[REDACTED]'
  expect(quarantined(item).item).toMatchObject({
    id: hidden,
    imported_at: hidden,
    source: { id: 's', is_alert_enabled: hidden, breached_at: hidden, leaked_at: hidden },
    auth_domains: hidden,
    urls: hidden,
  })
  for (const field of ['id', 'imported_at', 'source', 'auth_domains', 'urls']) {
    for (const value of [SECRET, [[SECRET]], { a: SECRET }, '7', '2024', 'true']) {
      const entry = quarantined(credential({ hash: null, identity_name: null, [field]: value }))
      const shown = JSON.stringify((entry.item as Record<string, unknown>)[field])
      expect(shown).not.toContain(SECRET)
      if (typeof value === 'string') expect(shown).toBe('"[REDACTED]"')
      expect(JSON.stringify(entry)).not.toContain(SECRET)
    }
  }
})

test('the secret is masked by the policy, or not shown at all', () => {
  const hash = (plan: Partial<DecodeSettings>, value: unknown = SECRET) =>
    (quarantined(credential({ id: null, hash: value }), plan).item as { hash: unknown }).hash
  expect(hash({ secret: 'partial' })).toBe('s****2')
  expect(hash({ secret: 'hmac' })).toMatch(/^[0-9a-f]{64}$/)
  expect(hash({ secret: 'plaintext' })).toBe(SECRET)
  expect(hash({ secret: 'drop' })).toBe('[REDACTED]')
  for (const secret of ['redact', 'plaintext'] as const) {
    expect(hash({ secret }, null)).toBeNull()
    expect(hash({ secret }, [SECRET])).toBe('[REDACTED]')
    expect(hash({ secret }, 42)).toBe('[REDACTED]')
  }
})

test('the identity is shown by its own policy', () => {
  const identity = (plan: Partial<DecodeSettings>, value: unknown = 'ada') =>
    (quarantined(credential({ id: null, identity_name: value }), plan).item as { identity_name: unknown })
      .identity_name
  expect(identity({ identity: 'keep' })).toBe('ada')
  expect(identity({ identity: 'drop' })).toBe('[REDACTED]')
  expect(identity({ identity: 'hmac' })).toMatch(/^[0-9a-f]{64}$/)
  expect(identity({ identity: 'keep' }, { a: SECRET })).toBe('[REDACTED]')
})

test('identifiers beyond 64 bits are quarantined with their digits as a string, never rounded', () => {
  const decoded = (id: string, more = {}) => {
    const json = JSON.stringify({ items: [credential({ id: 0, ...more })] }).replace('"id":0', `"id":${id}`)
    return createDecoder(decodeSettings())(Buffer.from(json), pageContext())
  }
  for (const id of ['9223372036854775808', '-9223372036854775809', '123456789012345678901234567890']) {
    const issues = [{ path: 'id', message: 'Invalid input: expected a 64-bit integer' }]
    expect(decoded(id).quarantined).toMatchObject([{ id, item: { id }, issues }])
  }
  for (const id of ['9007199254740991', '9007199254740993', '9223372036854775807', '-9223372036854775808'])
    expect(rowsOf(decoded(id))).toMatchObject([{ id: int64(BigInt(id)) }])
  // Not written as an integer.
  for (const id of ['9007199254740993.0', '9007199254740990.5', '9.007199254740993e15', '1e-400']) {
    expect(decoded(id).quarantined).toMatchObject([
      { id: null, item: { id: null }, issues: [{ path: 'id' }] },
    ])
  }
  // Quarantined for another reason.
  expect(decoded('9007199254740993', { domain: 7 }).quarantined).toMatchObject([{ id: '9007199254740993' }])
})

test('a number too long for a double is no string, and is not shown in a field that may hold a secret', () => {
  const json = JSON.stringify({ items: [credential({ hash: 0, credential_hash: 1, notes: [2] })] })
  const body = Buffer.from(json.replace(/:(\[?)([012])(?=[,\]}])/g, ':$19223372036854775$2'))
  const [entry] = createDecoder(decodeSettings({ secret: 'plaintext' }))(body, pageContext()).quarantined
  expect(entry).toMatchObject({ issues: [{ path: 'hash' }], item: { hash: '[REDACTED]' } })
  expect(JSON.stringify(entry)).not.toContain('9223372036854775')
})

test('items of hostile size are cut', () => {
  const unknown = Object.fromEntries(
    Array.from({ length: 5000 }, (_, i) => [`field-${i}-${'x'.repeat(500)}`, SECRET]),
  )
  const item = credential({
    ...unknown,
    id: null,
    domain: `${'é'.repeat(1_000_000)}`,
    urls: Array.from({ length: 100_000 }, (_, i) => i),
  })
  const entry = quarantined(item)
  expect(entry.issues).toHaveLength(20)
  expect(JSON.stringify(entry).length).toBeLessThan(40_000)
})

test('hostile names are plain keys', () => {
  const item = JSON.parse(
    JSON.stringify(credential({ id: null })).replace('"id"', '"__proto__":{"x":1},"constructor":1,"id"'),
  )
  const shown = quarantined(item).item as object
  expect(Object.keys(shown)).toEqual(expect.arrayContaining(['__proto__', 'constructor']))
  expect(Object.getPrototypeOf(shown)).toBe(Object.prototype)
})
