import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { ExportError, LEFT_OUT, learnSecret, repeatsSecret, unlessSecret } from '../../src/core/index.ts'

const SECRET = 'K4n"ri\\query+9f/d2&c7 <queryé> 100%'
const LONG_TOKEN = `eyJ0eXAi.${randomBytes(600).toString('base64url')}`
for (const secret of [SECRET, LONG_TOKEN]) learnSecret(secret)

const json = (text: string): string => JSON.stringify(text).slice(1, -1)
const html = (text: string): string =>
  text.replace(/[&<>"']/g, (found) => `&#${found.charCodeAt(0)};`).replace('é', '&eacute;')
const allPercent = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
const allUnicode = (text: string): string =>
  [...text].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
const base64 = (text: string | Buffer): string => Buffer.from(text as string).toString('base64')
const hex = (text: string): string => Buffer.from(text).toString('hex')
const utf16be = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16()

const DISGUISES: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (secret) => secret,
  'in capitals': (secret) => secret.toUpperCase(),
  'in small letters': (secret) => secret.toLowerCase(),
  'with other accents': (secret) => secret.normalize('NFD'),
  'wrapped over lines': (secret) => secret.replace(/.{7}/g, '$&\r\n\t'),
  'with invisible characters': (secret) => [...secret].join('\u200b'),
  'as UTF-8 taken for Latin-1': (secret) => Buffer.from(secret).toString('latin1'),
  'as JSON': json,
  'as JSON in JSON': (secret) => json(json(secret)),
  'as JSON in JSON in JSON': (secret) => json(json(json(secret))),
  'as JSON escapes alone': allUnicode,
  'as JSON escapes in capitals': (secret) => allUnicode(secret).toUpperCase(),
  'percent-encoded': encodeURIComponent,
  'as a form': (secret) => new URLSearchParams({ q: secret }).toString(),
  'percent-encoded twice': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'percent-encoded all over': allPercent,
  'as quoted-printable': (secret) => allPercent(secret).replaceAll('%', '='),
  'as CSV': (secret) => secret.replaceAll('"', '""'),
  'as HTML': html,
  'as HTML in JSON': (secret) => json(html(secret)),
  'percent-encoded JSON': (secret) => encodeURIComponent(json(secret)),
  'as hex': hex,
  'as hex in capitals': (secret) => hex(secret).toUpperCase(),
  'as hex after an odd digit': (secret) => `f${hex(secret)}`,
  'as bytes': (secret) => hex(secret).replace(/../g, '0x$&, '),
  'as bytes with colons': (secret) => hex(secret).replace(/..(?=.)/g, '$&:'),
  'as UTF-16': (secret) => Buffer.from(secret, 'utf16le').toString('latin1'),
  'as hex of UTF-16': (secret) => Buffer.from(secret, 'utf16le').toString('hex'),
  'as base64': base64,
  'as base64 in a header': (secret) => `Basic ${base64(`user:${secret}`)}`,
  'as base64 one byte on': (secret) => base64(`x${secret}`),
  'as base64 two bytes on': (secret) => base64(`xy${secret}`),
  'as base64 glued to a word': (secret) => `value${base64(secret)}`,
  'as base64url': (secret) => Buffer.from(`{${secret}}`).toString('base64url'),
  'as base64 of UTF-16': (secret) => base64(Buffer.from(secret, 'utf16le')),
  'as base64 of big-endian UTF-16': (secret) => base64(utf16be(secret)),
  'as base64 of base64': (secret) => base64(`v1:${base64(secret)}`),
  'as base64 of percent': (secret) => base64(encodeURIComponent(secret)),
  'as base64 in small letters': (secret) => base64(secret).toLowerCase(),
  'as a JWT would carry it': (secret) =>
    `e30.${Buffer.from(JSON.stringify({ q: secret })).toString('base64url')}.sig`,
  'as a digest': (secret) => createHash('sha1').update(secret).digest('hex').toUpperCase(),
  'as a digest in base64': (secret) => createHash('sha256').update(secret).digest('base64'),
  'cut short': (secret) => `${secret.slice(3, 300)}…`,
}

describe('a known secret is recognised in a string', () => {
  it.each(Object.entries(DISGUISES))('%s', (_name, disguise) => {
    for (const secret of [SECRET, LONG_TOKEN]) {
      const text = `The value (${disguise(secret)}) is refused`
      expect(repeatsSecret(text)).toBe(true)
      expect(repeatsSecret(text, 'long')).toBe(true)
      expect(unlessSecret(text)).toBe(LEFT_OUT)
    }
  })

  it('by a short part of it, in a message of a third party', () => {
    for (const secret of [SECRET, LONG_TOKEN]) {
      expect(repeatsSecret(`near "${secret.slice(3, 20)}"`)).toBe(true)
      expect(repeatsSecret(`output/${secret.slice(3, 20)}`, 'long')).toBe(false)
    }
  })

  it('and other strings pass unchanged', () => {
    for (const text of [
      'The service responded with 404: QUERY_REFUSED: no such index: credentials-2024 (POST http://127.0.0.1:8080)',
      randomBytes(2000).toString('base64'),
      randomBytes(2000).toString('hex'),
      'K4n"ri',
      '%%%\\u\\&#99999999;=',
    ]) {
      expect(unlessSecret(text)).toBe(text)
    }
  })

  it('in little time, whatever the string contains', () => {
    const before = process.cpuUsage()
    for (const piece of ['%25', '\\u005c', '&amp;', 'QUFB', '61', '\u0301', 'é\\"', 'a ']) {
      repeatsSecret(piece.repeat(4096 / piece.length))
    }
    // Processor time: other processes may delay this one.
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1000).toBeLessThan(4000)
  })
})

describe('an error', () => {
  it('loses each part that repeats a secret, and keeps the others', () => {
    const error = new ExportError({
      kind: 'refused',
      what: `No match for ${SECRET}`,
      where: `GET /?q=${hex(SECRET)}`,
      next: 'Run again.',
    })
    expect(error.message).toBe(`${LEFT_OUT} (${LEFT_OUT}). Run again.`)
    expect([error.what, error.where, error.next]).toEqual([LEFT_OUT, LEFT_OUT, 'Run again.'])
    expect(error.stack).not.toContain('K4n')
  })
})

describe('an address', () => {
  it('is hidden in every message, and its domain may appear in messages of Spillway', () => {
    const address = 'rowan.tarn@subsidiary.of.long-names.example'
    learnSecret(address, 'whole')
    const own = `domain.subsidiary.of.long-names.example/all is done`
    expect(unlessSecret(own, 'long')).toBe(own)
    for (const text of [address, base64(address), address.toUpperCase()]) {
      expect(unlessSecret(`no ${text}`, 'long')).toBe(LEFT_OUT)
    }
    expect(unlessSecret('for "rowan.tarn@subsi…"')).toBe(LEFT_OUT)
  })
})

describe('a secret as short as a word', () => {
  it('is hidden in messages of third parties, and does not change messages of Spillway', () => {
    for (const secret of ['a', 'hunter2', '!!', '"', '123456']) learnSecret(secret)
    for (const text of [
      'no match for hunter2',
      `x ${base64('hunter2')}`,
      'pin: 123456',
      'say !!',
      'c"d',
      'data',
    ]) {
      expect(unlessSecret(text), text).toBe(LEFT_OUT)
    }
    expect(unlessSecret('xyz')).toBe('xyz')
    const error = new ExportError({
      kind: 'locked',
      what: 'Another run holds this pipeline',
      where: 'out',
      next: 'Wait for it to end.',
    })
    expect(error.message).toBe('Another run holds this pipeline (out). Wait for it to end.')
  })
})
