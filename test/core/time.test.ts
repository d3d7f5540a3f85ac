import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  formatInstant,
  formatTimestamp,
  int64,
  parseInstant,
  parseTimestamp,
  systemClock,
} from '../../src/core/index.ts'
import { cases } from '../support/thorough.ts'

const FIRST = -62_135_596_800_000_000n
const LAST = 253_402_300_799_999_999n
const micros = fc.oneof(
  fc.bigInt({ min: FIRST, max: LAST }).map(int64),
  fc.maxSafeInteger(),
  fc.integer({ min: -2_000_000, max: 2_000_000 }),
  fc.integer({ min: 1_500_000_000_000_000, max: 1_900_000_000_000_000 }),
)

describe('timestamps', () => {
  it('are equal to the microsecond after formatting and parsing, before 1970 too', () => {
    fc.assert(
      fc.property(micros, (at) => {
        expect(parseTimestamp(formatTimestamp(at))).toBe(at)
        expect(parseTimestamp(formatInstant(at))).toBe(at)
      }),
      { numRuns: cases(2000, 200) },
    )
  })

  it('agree with Date in the milliseconds and keep the rest', () => {
    fc.assert(
      fc.property(micros, (at) => {
        const big = BigInt(at)
        const rest = ((big % 1000n) + 1000n) % 1000n
        const date = new Date(Number((big - rest) / 1000n))
        expect(formatTimestamp(at)).toBe(
          `${date.toISOString().slice(0, -1)}${String(rest).padStart(3, '0')}Z`,
        )
      }),
    )
  })

  it('are the same instant whatever the offset they are written with', () => {
    const offset = fc.tuple(fc.constantFrom(1, -1), fc.integer({ min: 0, max: 23 * 60 + 59 }))
    fc.assert(
      fc.property(
        // No offset leads out of the years 1 to 9999.
        fc.bigInt({ min: FIRST + 86_400_000_000n, max: LAST - 86_400_000_000n }).map(int64),
        offset,
        fc.constantFrom(':', ''),
        (at, [sign, minutes], colon) => {
          const local = formatTimestamp(BigInt(at) + BigInt(sign * minutes) * 60_000_000n).slice(0, -1)
          const hh = String(Math.floor(minutes / 60)).padStart(2, '0')
          const mm = String(minutes % 60).padStart(2, '0')
          expect(parseTimestamp(`${local}${sign < 0 ? '-' : '+'}${hh}${colon}${mm}`)).toBe(at)
        },
      ),
    )
  })

  it.each([
    ['2024-07-22T19:25:52.893439+00:00', '2024-07-22T19:25:52.893439Z'],
    ['2024-07-22t19:25:52,893439z', '2024-07-22T19:25:52.893439Z'],
    ['2024-07-22 19:25:52', '2024-07-22T19:25:52.000000Z'],
    ['2024-07-22T19:25', '2024-07-22T19:25:00.000000Z'],
    ['2024-07-22', '2024-07-22T00:00:00.000000Z'],
    ['2024-07-22T19:25:52.123456789Z', '2024-07-22T19:25:52.123456Z'],
    ['2024-07-22T01:00:00+02', '2024-07-21T23:00:00.000000Z'],
    ['2255-06-05T23:47:34.740991Z', '2255-06-05T23:47:34.740991Z'],
    ['9999-12-31T23:59:59.999999+00:00', '9999-12-31T23:59:59.999999Z'],
  ])('read %s as %s', (text, expected) => {
    const at = parseTimestamp(text)
    expect(at === null ? null : formatTimestamp(at)).toBe(expected)
  })

  it.each([
    ['hour 24', '2024-01-01T24:00:00Z'],
    ['a leap second', '2016-12-31T23:59:60Z'],
    ['an offset of 24 hours', '2024-01-01T00:00:00+24:00'],
    ['ten digits of fraction', '2024-01-01T00:00:00.1234567890Z'],
    ['an offset on a date', '2024-01-01Z'],
    ['an instant before the year 1', '0001-01-01T00:00:00+00:01'],
    ['an instant after the year 9999', '9999-12-31T23:59:59-00:01'],
    ['space around it', ' 2024-01-01'],
    ['a newline behind it', '2024-01-01\n'],
    ['digits of another script', '٢٠٢٤-01-01'],
    ['nothing', ''],
  ])('refuse %s', (_, text) => {
    expect(parseTimestamp(text)).toBeNull()
  })

  it.each([
    ['2024-07-22T19:25:52.893439Z', 1_721_676_352_893_439],
    ['2255-06-05T23:47:34.740991Z', Number.MAX_SAFE_INTEGER],
    ['0001-01-01T00:00:00.000001Z', null],
    ['9999-12-31', null],
  ])('are an instant to reckon with where a number is exact: %s', (text, expected) => {
    expect(parseInstant(text)).toBe(expected)
  })

  it('agree with Date on which days exist', () => {
    const part = (max: number) => fc.integer({ min: 0, max })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9999 }), part(13), part(32), (year, month, day) => {
        const text = `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
        const date = new Date(0)
        date.setUTCFullYear(year, month - 1, day)
        const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
        expect(parseTimestamp(text)).toBe(exists ? int64(BigInt(date.getTime()) * 1000n) : null)
      }),
      { numRuns: cases(2000, 200) },
    )
  })

  it('are formatted with a fraction only if it is not zero', () => {
    expect(formatInstant(0)).toBe('1970-01-01T00:00:00Z')
    expect(formatInstant(1)).toBe('1970-01-01T00:00:00.000001Z')
    expect(formatInstant(-1)).toBe('1969-12-31T23:59:59.999999Z')
    expect(formatInstant(100_000)).toBe('1970-01-01T00:00:00.100000Z')
  })
})

it('any number of waits may end with one signal, and Node prints no warning', async () => {
  const warnings: string[] = []
  const warned = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', warned)
  onTestFinished(() => void process.off('warning', warned))
  const end = new AbortController()
  const waits = Array.from({ length: 20 }, () => systemClock.sleep(60_000, end.signal))
  end.abort(new Error('the end'))
  for (const each of await Promise.allSettled(waits))
    expect(each).toMatchObject({ status: 'rejected', reason: { message: 'the end' } })
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
})
