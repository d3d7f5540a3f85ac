import { expect, it } from 'vitest'
import { type DecodeSettings, KNOWN_EXTRAS } from '../../src/rows/index.ts'
import { agreedPage, unknownField } from './agreement.ts'
import { credential, source } from './credentials.ts'
import { type Row, rowsOf } from './plans.ts'

const MASK_KEY = Buffer.from('an example key of thirty-two bytes')

const decoded = (items: readonly (object | string)[], plan: Partial<DecodeSettings> = {}) =>
  agreedPage(items, { maskKey: MASK_KEY, ...plan })

function rowOf(item: Readonly<Record<string, unknown>>, plan: Partial<DecodeSettings> = {}): Row {
  return rowsOf(decoded([credential(item)], plan))[0]!
}

const URLS = [
  'https://u1:Tr0ub4dor@shop.test:8443/a/b?u=jane.doe77@corp.test#top',
  'android://abc==@com.shop.app/',
  'shop.test/login;jsessionid=1?x',
  'jane@corp.test',
  'https://shop.test:jane:Tr0ub4dor',
  'https://[::1]:80/x',
  'https://shop.test/@jane',
  'not a url',
  '',
]

it('URLs are written without user information, query and fragment', () => {
  for (const secret of ['redact', 'drop', 'partial', 'hmac'] as const)
    expect(rowOf({ urls: URLS, hash: 'shop' }, { secret }).urls).toEqual([
      'https://shop.test:8443/a/b',
      'android://com.shop.app/',
      'shop.test/login;jsessionid=1',
      'corp.test',
      'https://shop.test:jane:Tr0ub4dor',
      'https://[::1]:80/x',
      'https://shop.test/@jane',
      'not a url',
      '',
    ])
  expect(rowOf({ urls: URLS }, { secret: 'plaintext' }).urls).toEqual(URLS)
})

it('where identities are hidden, URLs are scheme and host alone', () => {
  for (const identity of ['hmac', 'drop'] as const)
    for (const secret of ['redact', 'plaintext'] as const)
      expect(rowOf({ urls: URLS.slice(0, 7) }, { secret, identity }).urls).toEqual([
        'https://shop.test/',
        'android://com.shop.app/',
        'shop.test/',
        'corp.test/',
        'https://shop.test/',
        'https://[::1]/',
        'https://shop.test/',
      ])
})

it('no text depends on the secret: rows with the same texts and other secrets are written alike', () => {
  const texts = {
    domain: 'linkedin.com',
    identity_name: 'linkedin@linkedin.com',
    hash_type: 'linkedin',
    auth_domains: ['www.linkedin.com'],
    urls: ['https://www.linkedin.com/login'],
    source: source({ name: 'LinkedIn 2012 linkedin', url: 'https://linkedin.com', pii_tags: ['linkedin'] }),
  }
  const extras = KNOWN_EXTRAS.filter(({ path }) => path[0] === 'source')
  const [one, other] = ['linkedin', 'http'].map((hash) => rowOf({ ...texts, hash }, { extras }))
  expect(one).toEqual(other)
  expect(JSON.stringify(one)).not.toContain('REDACTED].com')
})

it.each([
  ['ada@x.test:Tr0ub4dor', 'ada@x.test'],
  ['ada@x.test;Tr0ub4dor', 'ada@x.test'],
  ['ada@x.test | Tr0ub4dor', 'ada@x.test'],
  ['Tr0ub4dor:ada@x.test', 'ada@x.test'],
  ['https://x.test:ada@x.test:Tr0ub4dor', 'https://x.test:ada@x.test'],
  ['ada@x.test:Tr0ub4dor:2024', 'ada@x.test:2024'],
  ['ada@x.test:Tr0ub4dor:Tr0ub4dor', 'ada@x.test'],
  ['ada:Tr0ub4dor2', 'ada:Tr0ub4dor2'],
  ['Tr0ub4dor@x.test', 'Tr0ub4dor@x.test'],
  ['a\\:b@x.test', 'a\\:b@x.test'],
  ['Tr0ub4dor:Tr0ub4dor', ''],
])('an identity that is a line of a list loses the secret: %s', (identity, shown) => {
  expect(rowOf({ identity_name: identity, hash: 'Tr0ub4dor' }).identity_name).toBe(shown)
  expect(rowOf({ identity_name: identity, hash: 'Tr0ub4dor' }, { secret: 'plaintext' }).identity_name).toBe(
    identity,
  )
  // A digest is that of the identity, by which a person is found.
  const digest = (name: string, hash: string) =>
    rowOf({ identity_name: name, hash }, { identity: 'hmac' }).identity_name
  expect(digest(identity, 'Tr0ub4dor')).toBe(digest(shown, 'other'))
})

const EXTRAS = [
  unknownField('note', 'note', 'string'),
  unknownField('number', 'number', 'int64'),
  unknownField('at', 'at', 'timestamp'),
  unknownField('deep', 'deep', 'json'),
  ...KNOWN_EXTRAS.filter(({ name }) => ['event_uid', 'credential_hash', 'source_url'].includes(name)),
]

it('an additional column that contains the secret is withheld as a whole', () => {
  const hash = '2024"Tr0ub'
  const item = credential({
    hash,
    note: `pw: ${hash}!`,
    event_uid: `e-${hash}`,
    credential_hash: 'c1',
    source: source({ url: `https://${hash}/` }),
  })
  const json = `${JSON.stringify(item).slice(0, -1)},"deep":{"a":[1,{"b":${JSON.stringify(hash)},"b":2}]},"at":"2024-01-02T03:04:05Z"}`
  expect(rowsOf(decoded([json], { extras: EXTRAS }))[0]).toMatchObject({
    note: '[REDACTED]',
    deep: '"[REDACTED]"',
    event_uid: '[REDACTED]',
    credential_hash: 'c1',
    source_url: `https://${hash}/`,
  })
  expect(rowOf({ hash: '12345', number: 9_123_456, note: '1234' }, { extras: EXTRAS })).toMatchObject({
    number: null,
    note: '1234',
  })
  expect(rowOf({ hash: '123', note: '123' }, { extras: EXTRAS })).toMatchObject({ note: '123' })
  expect(rowOf({ hash, note: hash }, { extras: EXTRAS, secret: 'plaintext' })).toMatchObject({ note: hash })
})

it('one that contains a hidden identity is withheld, too', () => {
  const item = { identity_name: 'ada@x.test', note: 'to ada@x.test', hash: null }
  expect(rowOf(item, { extras: EXTRAS }).note).toBe('to ada@x.test')
  for (const identity of ['hmac', 'drop'] as const)
    expect(rowOf(item, { extras: EXTRAS, identity }).note).toBe('[REDACTED]')
})

it('quarantine shows no text that contains the secret, and names of fields do not tell it', () => {
  const hash = 'Tr0ub4dor'
  const broken = credential({
    hash,
    id: 'x',
    identity_name: `ada@x.test:${hash}`,
    domain: `${hash}.test`,
    hash_type: 'plain',
    urls: [`https://ada:${hash}@x.test/`],
    [hash]: 1,
  })
  const { quarantined } = decoded([broken, credential({ id: 2, hash, [`a${hash}`]: 1, severity: 1 })])
  expect(quarantined[0]!.item).toMatchObject({
    hash: '[REDACTED]',
    identity_name: 'ada@x.test',
    domain: '[REDACTED]',
    hash_type: 'plain',
    urls: ['https://x.test/'],
  })
  expect(JSON.stringify(quarantined)).not.toContain(hash)
  const nested = credential({ id: 3, hash: { value: [hash] }, domain: `x ${hash}` })
  expect(JSON.stringify(decoded([nested]).quarantined)).not.toContain(hash)
  expect(decoded([credential({ id: 2, hash, [`a${hash}`]: 1, severity: 1 })]).unknownFields).toEqual({
    severity: 1,
    '…': 1,
  })
})
