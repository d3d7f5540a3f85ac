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

describe('quantities', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [999_949, '999.9 kB'],
    [999_950, '1.0 MB'],
    [8_140_000_000, '8.1 GB'],
  ])('%d bytes are %s', (value, text) => expect(bytes(value)).toBe(text))

  it.each([
    [0, '0.0 s'],
    [9_949, '9.9 s'],
    [9_950, '10 s'],
    [59_600, '1 min 0 s'],
    [3_599_000, '59 min 59 s'],
    [3_599_600, '1 h 0 min'],
    [86_399_000, '1 d 0 h'],
  ])('%d ms are %s', (value, text) => expect(duration(value)).toBe(text))

  it.each([
    [0, '5 s'],
    [11_000, '15 s'],
    [56_000, '1 min'],
    [61_000, '2 min'],
    [3_599_000, '1 h 0 min'],
  ])('%d ms that are estimated are %s', (value, text) => expect(roughly(value)).toBe(text))

  it.each([
    [0, '0:00'],
    [7_400, '0:07'],
    [3_599_600, '1:00:00'],
  ])('%d ms on the stopwatch are %s', (value, text) => expect(stopwatch(value)).toBe(text))
})

it.each([
  ['pipelines/demo.yaml', 'pipelines/demo.yaml'],
  ["it's here.yaml", `'it'\\''s here.yaml'`],
  ['$(x).yaml', `'$(x).yaml'`],
])('%s is %s in a shell', (text, word) => expect(shellWord(text)).toBe(word))
