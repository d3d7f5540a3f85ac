import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { plainJson, plainLine, plainText } from '../../src/cli/plain-text.ts'
import { progressLine } from '../../src/cli/progress-line.ts'
import { bytes, duration, stopwatch } from '../../src/cli/quantities.ts'
import { shellWord } from '../../src/cli/shell.ts'
import { styleFor } from '../../src/cli/style.ts'

const anyText = fc.string({ unit: 'binary' })

describe('text from elsewhere', () => {
  it('keeps nothing that steers a terminal', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(plainText(text)).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(plainLine(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      }),
    )
  })

  it('as JSON stays the same value on one line', () => {
    fc.assert(
      fc.property(fc.jsonValue(), anyText, (value, text) => {
        const json = plainJson({ value, text })
        expect(json).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify({ value, text })))
      }),
    )
  })

  it('leaves ordinary writing alone', () => {
    expect(plainText('Grüße, 世界 🧵\n\tzwei')).toBe('Grüße, 世界 🧵\n\tzwei')
  })
})

describe('the progress line', () => {
  const amount = fc.integer({ min: 0, max: 1_000_000_000 })
  const moment = fc.record({
    name: fc.stringMatching(/^[a-z0-9-]{1,100}$/),
    progress: fc.record({
      partitionsTotal: amount,
      partitionsDone: amount,
      partitionsFailed: amount,
      rows: amount,
      requests: amount,
      retries: amount,
      quarantined: amount,
      searchesRemaining: fc.option(amount),
      pausedUntilMs: fc.option(amount),
    }),
    doneBefore: amount,
    elapsedMs: amount,
    nowMs: amount,
    columns: fc.integer({ min: 24, max: 300 }),
  })

  it('never is wider than the terminal', () => {
    fc.assert(
      fc.property(moment, (now) => {
        const plain = styleFor(false)
        for (const line of progressLine(now, plain).split('\n')) {
          expect(line.length).toBeLessThan(now.columns)
        }
      }),
    )
  })

  it('says what matters first', () => {
    const progress = {
      partitionsTotal: 24,
      partitionsDone: 12,
      partitionsFailed: 1,
      rows: 150_000,
      requests: 26,
      retries: 0,
      quarantined: 0,
      searchesRemaining: 974,
      pausedUntilMs: 9_000,
    }
    const now = { name: 'demo', progress, doneBefore: 0, elapsedMs: 6_000, nowMs: 0 }
    const [wide, wait] = progressLine({ ...now, columns: 200 }, styleFor(false)).split('\n')
    expect(wide).toBe(
      'demo ━━━━━━━━━━──────────  12/24  1 failed  150,000 rows  0:06, about 0:06 left  25,000 rows/s  26 requests  974 searches left',
    )
    expect(wait).toBe('the service asks for patience: 0:09')
    expect(progressLine({ ...now, columns: 40 }, styleFor(false)).split('\n')[0]).toBe(
      'demo ━━━━────  12/24  1 failed',
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
