import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ExtraField } from '../../src/core/index.ts'
import { type DecodeSettings, KNOWN_EXTRAS } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { agreedPage, unknownField } from './agreement.ts'
import { credential, source } from './credentials.ts'
import { type Row, rowsOf } from './plans.ts'

const SECRET = 'sunflower-42'

function withField(json: string, changes: Readonly<Record<string, unknown>> = {}): string {
  return `${JSON.stringify(credential(changes)).slice(0, -1)},${json}}`
}

function extraValue(json: string, field: ExtraField, changes = {}, plan: Partial<DecodeSettings> = {}) {
  const page = agreedPage([withField(json, changes)], { extras: [field], ...plan })
  expect(page.quarantined).toEqual([])
  return (rowsOf(page)[0] as Row)[field.name]
}

test('documented fields are columns after the others, in the order of the plan', () => {
  const extras = [KNOWN_EXTRAS[2]!, KNOWN_EXTRAS[0]!, KNOWN_EXTRAS[3]!, KNOWN_EXTRAS[1]!]
  const full = { url: 'https://a.example', pii_tags: ['email', 'é'] }
  const item = credential({ event_uid: 'leak/1', credential_hash: 'c0ffee', source: source(full) })
  const page = agreedPage([item], { extras })
  const row = rowsOf(page)[0]!
  expect(Object.keys(row).slice(-4)).toEqual(
    'source_pii_tags event_uid source_url credential_hash'.split(' '),
  )
  expect(row).toMatchObject({
    source_pii_tags: ['email', 'é'],
    event_uid: 'leak/1',
    source_url: 'https://a.example',
    credential_hash: 'c0ffee',
  })
  expect(page.unknownFields).toEqual({})
})

test('a missing or null value is null, also if the source or an object on its path is', () => {
  const extras = [
    ...KNOWN_EXTRAS,
    unknownField('deep', 'a.b.c', 'json'),
    unknownField('s', 'source.a.b', 'string'),
  ]
  const nothing = {
    event_uid: null,
    credential_hash: null,
    source_pii_tags: null,
    source_url: null,
    deep: null,
    s: null,
  }
  const nulls = { event_uid: null, a: { b: null }, source: source({ url: null, pii_tags: null, a: null }) }
  for (const changes of [{}, { source: null }, nulls, { a: null }, { a: {} }]) {
    const page = agreedPage([credential(changes)], { extras })
    expect(rowsOf(page)[0]).toMatchObject(nothing)
  }
})

test('each type accepts its values', () => {
  const value = (type: ExtraField['type'], json: string) =>
    extraValue(`"x":${json}`, unknownField('x', 'x', type))
  expect(value('string', '"a\\u00e9\\ud800\\n"')).toBe('aé\ufffd\n')
  expect(value('string', '""')).toBe('')
  for (const [json, number] of [
    ['0', 0],
    ['-0', 0],
    ['7', 7],
    ['-12', -12],
    ['1e3', 1000],
    ['2.0', 2],
    ['9007199254740993', 9007199254740993n],
    ['-9223372036854775808', -(2n ** 63n)],
  ] as const)
    expect(value('int64', json)).toBe(number)
  expect(value('boolean', 'true')).toBe(true)
  expect(value('boolean', 'false')).toBe(false)
  expect(value('timestamp', '"1970-01-01T00:00:01.5+00:00"')).toBe(1_500_000)
})

test('json is compact and keeps every digit and repeated names', () => {
  const value = (json: string) => extraValue(`"x":${json}`, unknownField('x', 'x', 'json'))
  const number = '[1.10,-0,1e400,12345678901234567890,0.1234567890123456789012]'
  expect(value(` { "b" : ${number.replaceAll(',', ' ,\n\t')} , "a":"x  y" , "a" : { } } `)).toBe(
    `{"b":${number},"a":"x  y","a":{}}`,
  )
  expect(value('"\\u0041\\/\\ud800\\u0000é"')).toBe('"A/\ufffd\\u0000é"')
  expect(value('false')).toBe('false')
  const deep = `${'['.repeat(500)}${']'.repeat(500)}`
  expect(value(deep)).toBe(deep)
})

test('json is the value that JSON.parse gives for the response', () => {
  const field = unknownField('x', 'details.x', 'json')
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(0, 1, 4), (json, space) => {
      const parsed: unknown = JSON.parse(json)
      const written = JSON.stringify({ before: '"x":1', x: parsed, after: [parsed] }, null, space)
      const found = extraValue(`"details":${written}`, field, {}, { secret: 'plaintext' })
      expect(found === null ? null : JSON.parse(String(found))).toEqual(
        JSON.parse(JSON.stringify(parsed).toWellFormed()),
      )
    }),
    { numRuns: cases(150, 20) },
  )
})

test('a value of another type, also of an object on its path, breaks the schema of its row', () => {
  const extras = [
    ...KNOWN_EXTRAS,
    unknownField('text', 'd.text', 'string'),
    unknownField('whole', 'd.whole', 'int64'),
    unknownField('truth', 'd.truth', 'boolean'),
    unknownField('time', 'd.time', 'timestamp'),
    unknownField('deep', 'd.e.f', 'json'),
    unknownField('owner', 'source.owner.name', 'string'),
  ]
  const issues = (changes: Readonly<Record<string, unknown>>) => {
    const page = agreedPage([credential({ id: 7 }), credential(changes)], { extras })
    expect(page.rows).toBe(1)
    expect(page.quarantined).toHaveLength(1)
    return page.quarantined[0]!.issues.map(({ path, message }) => `${path}: ${message}`)
  }
  const type = (expected: string) => `Invalid input: expected ${expected}`
  expect(issues({ event_uid: 5 })).toEqual([`event_uid: ${type('string')}`])
  expect(issues({ credential_hash: ['x'] })).toEqual([`credential_hash: ${type('string')}`])
  expect(issues({ source: source({ url: 1, pii_tags: ['a', null] }) })).toEqual([
    `source.pii_tags: ${type('an array of strings')}`,
    `source.url: ${type('string')}`,
  ])
  expect(issues({ d: { text: {}, whole: 1.5, truth: 'true', time: 'soon', e: [] } })).toEqual([
    `d.e: ${type('object')}`,
    `d.text: ${type('string')}`,
    `d.whole: ${type('a 64-bit integer')}`,
    `d.truth: ${type('boolean')}`,
    `d.time: ${type('an ISO 8601 timestamp')}`,
  ])
  expect(issues({ d: { whole: '7' } })).toEqual([`d.whole: ${type('a 64-bit integer')}`])
  expect(issues({ d: 'x' })).toEqual([`d: ${type('object')}`])
  expect(issues({ source: source({ owner: 7 }) })).toEqual([`source.owner: ${type('object')}`])
  // In addition to the issues of the schema itself.
  expect(issues({ domain: 7, d: [] })).toEqual([expect.stringContaining('domain: '), `d: ${type('object')}`])
  for (const json of ['1e-400', '2e-324', '9007199254740990.5']) {
    const page = agreedPage([withField(`"x":${json}`)], { extras: [unknownField('x', 'x', 'int64')] })
    expect(page.quarantined.map(({ issues }) => issues[0]?.path)).toEqual(['x'])
  }
})

test('fields that are not in the plan are counted, also beside the path of an extra column', () => {
  const extras = [
    KNOWN_EXTRAS[3]!,
    unknownField('x', 'a.b.x', 'json'),
    unknownField('y', 'source.c.y', 'json'),
  ]
  const item = credential({
    a: { b: { x: { inner: 1 }, z: 1 }, q: [] },
    other: 1,
    source: source({ url: 'u', c: { y: 1, w: 1 }, owner: 1 }),
  })
  const page = agreedPage([item], { extras })
  expect(page.unknownFields).toEqual({ other: 1, 'source.owner': 1, 'a.b.z': 1, 'a.q': 1, 'source.c.w': 1 })
})

test('a documented field is exported unchanged, and quarantine shows the digest only if the plan has it', () => {
  const item = credential({ event_uid: SECRET, credential_hash: 'c0ffee', domain: 7 })
  const quarantined = (extras: readonly ExtraField[]) => agreedPage([item], { extras }).quarantined[0]!.item
  expect(quarantined([])).toMatchObject({ credential_hash: '[REDACTED]' })
  expect(quarantined([KNOWN_EXTRAS[0]!])).toMatchObject({ credential_hash: '[REDACTED]' })
  expect(quarantined([KNOWN_EXTRAS[1]!])).toMatchObject({ credential_hash: 'c0ffee' })
  const note = unknownField('note', 'note', 'string')
  const broken = agreedPage([withField('"note":"n"', { domain: 7 })], { extras: [note] })
  expect(broken.quarantined[0]!.item).toMatchObject({ note: '[REDACTED]' })
})
