import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { ExportError, LEFT_OUT, learnSecret, repeatsSecret, unlessSecret } from '../../src/core/index.ts'
import { forgetSecrets } from '../support/clean-process.ts'
import { CODES, FORMS, HARD_SECRETS, unpleasantSecret } from '../support/quotations.ts'
import { cases } from '../support/thorough.ts'

/** Of this process no other secret is known: short ones are parts of the forms of others. */
function learnOnly(secret: string): void {
  forgetSecrets()
  learnSecret(secret)
}

/** Variables and files of secrets are UTF-8, so no secret that a process is given has a lone surrogate. */
const READABLE = HARD_SECRETS.filter((secret) => secret.isWellFormed())

const formsOf = (secret: string) =>
  Object.entries(Buffer.byteLength(secret) < 4 ? FORMS : { ...FORMS, ...CODES })

describe('a known secret is recognised in five forms', () => {
  it('whatever it is', () => {
    const token = `eyJ0eXAi.${randomBytes(600).toString('base64url')}`
    fc.assert(
      fc.property(unpleasantSecret, (drawn) => {
        const secret = drawn.toWellFormed()
        learnOnly(secret)
        for (const [name, write] of formsOf(secret)) {
          const text = `1 ${write(secret)} 2`
          expect(repeatsSecret(text), `${name}: ${text}`).toBe(true)
          if (secret.length >= 12) expect(repeatsSecret(text, 'long'), `${name}: ${text}`).toBe(true)
        }
        expect(repeatsSecret('§§ ¶¶')).toBe(false)
      }),
      { numRuns: cases(2000, 80), examples: [...READABLE, token].map((secret) => [secret]) },
    )
  })

  it('and other strings pass unchanged', () => {
    learnOnly('K4n"ri\\query+9f/d2&c7 <queryé> 100%')
    for (const text of [
      'The service responded with 404: QUERY_REFUSED: no such index: credentials-2024 (POST http://127.0.0.1:8080)',
      randomBytes(2000).toString('base64'),
      randomBytes(2000).toString('hex'),
      'K4n"ri',
      '%%%\\u\\&#99999999;=',
    ]) {
      expect(repeatsSecret(text), text).toBe(false)
    }
  })
})

test('an error loses each part that repeats a secret, and keeps the others', () => {
  const secret = 'K4n"ri\\query+9f/d2&c7 <queryé> 100%'
  learnOnly(secret)
  const error = new ExportError({
    kind: 'refused',
    what: `No match for ${secret}`,
    where: `GET /?q=${Buffer.from(secret).toString('hex')}`,
    next: 'Run again.',
  })
  expect(error.message).toBe(`${LEFT_OUT} (${LEFT_OUT}). Run again.`)
  expect([error.what, error.where, error.next]).toEqual([LEFT_OUT, LEFT_OUT, 'Run again.'])
  expect(error.stack).not.toContain('K4n')
})

test('a secret as short as a word is hidden in messages of third parties, and changes none of Spillway', () => {
  forgetSecrets()
  for (const secret of ['a', 'hunter2', '!!', '"', '123456', '+', ' ']) learnSecret(secret)
  const code = Buffer.from('hunter2').toString('base64')
  for (const text of ['no match for hunter2', `x ${code}`, 'pin: 123456', 'say !!', 'c"d', 'data'])
    expect(unlessSecret(text), text).toBe(LEFT_OUT)
  expect(unlessSecret('xyz + uvw')).toBe('xyz + uvw')
  const own = 'Another run with hunter2 holds this pipeline'
  expect(unlessSecret(own, 'long')).toBe(own)
  expect(repeatsSecret(own)).toBe(true)
})
