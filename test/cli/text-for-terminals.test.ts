import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutTo, padTo, widthOf } from '../../src/cli/terminal/screen.ts'
import {
  bytes,
  duration,
  plainJson,
  plainLine,
  plainText,
  roughly,
  stopwatch,
} from '../../src/cli/terminal/text.ts'
import { shellWord } from '../../src/core/index.ts'

const anyText = fc.string({ unit: 'binary' })

describe('text from outside', () => {
  it('loses all that controls a terminal', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(plainText(text)).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(plainLine(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      }),
    )
  })

  it('as JSON keeps its value on one line', () => {
    fc.assert(
      fc.property(fc.jsonValue(), anyText, (value, text) => {
        const json = plainJson({ value, text })
        expect(json).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify({ value, text })))
      }),
    )
  })

  it('is unchanged if it is ordinary text', () => {
    expect(plainText('Grüße, 世界 🧵\n\tzwei')).toBe('Grüße, 世界 🧵\n\tzwei')
  })
})

describe('columns of a terminal', () => {
  it.each([
    ['plain', 5],
    ['Grüße', 5],
    ['é', 1],
    ['世界', 4],
    ['🧵!', 3],
  ])('%s takes %d', (text, width) => expect(widthOf(text)).toBe(width))

  it('texts are cut and padded by columns, not by characters', () => {
    expect(cutTo('世界世界', 5)).toBe('世界…')
    expect(padTo('世界', 6)).toBe('世界  ')
    expect(padTo('12', 4, 'right')).toBe('  12')
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, columns) => {
        expect(widthOf(cutTo(text, columns))).toBeLessThanOrEqual(columns)
      }),
    )
  })
})

it.each([
  [
    bytes,
    { 0: '0 B', 999: '999 B', 1000: '1.0 kB', 999949: '999.9 kB', 999950: '1.0 MB', 8140000000: '8.1 GB' },
  ],
  [duration, { 0: '0.0 s', 9949: '9.9 s', 9950: '10 s', 59600: '1 min 0 s', 3599000: '59 min 59 s' }],
  [duration, { 3599600: '1 h 0 min', 86399000: '1 d 0 h' }],
  [roughly, { 0: '5 s', 11000: '15 s', 56000: '1 min', 61000: '2 min', 3599000: '1 h 0 min' }],
  [stopwatch, { 0: '0:00', 7400: '0:07', 3599600: '1:00:00' }],
])('quantities are short: %o %o', (shown, expected) => {
  for (const [value, text] of Object.entries(expected)) expect(shown(Number(value))).toBe(text)
})

it.each([
  ['pipelines/demo.yaml', 'pipelines/demo.yaml'],
  ["it's here.yaml", `'it'\\''s here.yaml'`],
  ['$(x).yaml', `'$(x).yaml'`],
])('%s is %s in a shell', (text, word) => expect(shellWord(text)).toBe(word))
