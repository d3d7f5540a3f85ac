import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import {
  formatInstant,
  isExportError,
  type Micros,
  parseWindow,
  type Window,
  type WindowLength,
  type WindowSettings,
  windowRange,
} from '../../../src/core/index.ts'
import { windowAt } from '../../../src/pipeline/index.ts'
import { splitWindows } from '../../../src/pipeline/plan/plan.ts'
import { cases } from '../../support/thorough.ts'
import { at, HOUR } from './pipeline.ts'

const DAY = 24 * HOUR
const LATER = at('2200-01-01')
const hourOf = (at: Micros): Micros => Math.floor(at / HOUR) * HOUR

const length: fc.Arbitrary<WindowLength> = fc.oneof(
  fc.record({ unit: fc.constant('hour' as const), count: fc.integer({ min: 1, max: 100 }) }),
  fc.record({ unit: fc.constant('day' as const), count: fc.integer({ min: 1, max: 100 }) }),
  fc.record({ unit: fc.constantFrom('week' as const, 'month' as const, 'year' as const) }),
)
const instant = fc.integer({ min: at('1950-01-01'), max: at('2060-01-01') })
const range = fc
  .tuple(
    instant,
    fc.oneof(
      fc.integer({ min: 1, max: DAY }),
      fc.integer({ min: 1, max: 30 * DAY }),
      fc.integer({ min: 1, max: 900 * DAY }),
    ),
  )
  .map(([from, span]) => ({ from, until: from + span }))

function settings(over: Partial<WindowSettings>): WindowSettings {
  return {
    from: at('2024-01-01'),
    until: at('2024-07-01'),
    every: { unit: 'month' },
    lagMs: 0,
    perChain: null,
    ...over,
  }
}

function show(windows: readonly Window[]): string[] {
  return windows.map(({ from, until }) => `${formatInstant(from)} ${formatInstant(until)}`)
}

/** Every window begins at the end of the one before it, none is empty, and together they are the range. */
function expectTiling(windows: readonly Window[], from: Micros, until: Micros): void {
  let end = from
  const wrong = windows.filter((window) => {
    const follows = window.from === end && window.until > window.from
    end = window.until
    return !follows
  })
  expect(wrong).toEqual([])
  expect(end).toBe(until)
}

describe('windows', () => {
  it('tile any past range without gap or overlap, whatever their length', () => {
    fc.assert(
      fc.property(range, fc.option(length), ({ from, until }, every) => {
        expectTiling(splitWindows(settings({ from, until, every }), LATER), from, until)
      }),
      { numRuns: cases(1500, 150) },
    )
  })

  it('of hours and days have their length, counted from the beginning; only the last may be shorter', () => {
    const fixed = fc.record({
      unit: fc.constantFrom('hour' as const, 'day' as const),
      count: fc.integer({ min: 1, max: 50 }),
    })
    fc.assert(
      fc.property(range, fixed, ({ from, until }, every) => {
        const span = every.count * (every.unit === 'hour' ? HOUR : DAY)
        const windows = splitWindows(settings({ from, until, every }), LATER)
        const wrong = windows.slice(0, -1).filter((window) => window.until - window.from !== span)
        expect(wrong).toEqual([])
        const last = windows.at(-1)
        expect((last?.until ?? 0) - (last?.from ?? 0)).toBeLessThanOrEqual(span)
      }),
    )
  })

  it.each([
    ['week', (date: Date) => date.getUTCDay() === 1],
    ['month', (date: Date) => date.getUTCDate() === 1],
    ['year', (date: Date) => date.getUTCDate() === 1 && date.getUTCMonth() === 0],
  ] as const)('of a %s break at midnight of its first day, and only there', (unit, isFirst) => {
    fc.assert(
      fc.property(range, ({ from, until }) => {
        const windows = splitWindows(settings({ from, until, every: { unit } }), LATER)
        const breaks = windows.slice(1).map((window) => window.from)
        const firsts: Micros[] = []
        for (let day = (Math.floor(from / DAY) + 1) * DAY; day < until; day += DAY)
          if (isFirst(new Date(day / 1000))) firsts.push(day)
        expect(breaks).toEqual(firsts)
      }),
      { numRuns: 60 },
    )
  })

  it('are one for the whole range without a length, and none for an empty range', () => {
    expect(show(splitWindows(settings({ every: null }), LATER))).toEqual([
      '2024-01-01T00:00:00Z 2024-07-01T00:00:00Z',
    ])
    expect(splitWindows(settings({ until: at('2024-01-01') }), LATER)).toEqual([])
    expect(splitWindows(settings({ until: at('2023-01-01'), every: null }), LATER)).toEqual([])
  })
})

it('the end of the range is never later than now less the lag; before that only an incomplete window is left out', () => {
  const wholeHours = range.map(({ from, until }) => ({ from: hourOf(from), until: hourOf(until) }))
  const lag = fc.oneof(
    fc.nat({ max: 100 * 3_600_000 }),
    fc.nat({ max: 100 }).map((hours) => hours * 3_600_000),
  )
  /** How much later than the last ripe instant the range is to end; null: now. */
  const later = fc.option(
    fc.oneof(fc.integer({ min: -5 * DAY, max: DAY }), fc.integer({ min: -HOUR, max: HOUR })),
    { freq: 2 },
  )
  const every = fc.option(fc.oneof(length, fc.constant({ unit: 'hour' as const, count: 1 })))
  fc.assert(
    fc.property(fc.oneof(range, wholeHours), lag, later, every, (given, lagMs, later, every) => {
      const { from, until: now } = given
      const ripe = now - lagMs * 1000
      const until = later === null ? 'now' : ripe + later
      const windows = splitWindows(settings({ from, until, every, lagMs }), now)
      const last = windows.at(-1)?.until ?? from
      if (windows.length > 0) {
        expect(last).toBeLessThanOrEqual(ripe)
        expectTiling(windows, from, last)
      }
      if (until === 'now' && every !== null) {
        const longer = settings({ from, until: Math.max(ripe, from) + 400 * DAY, every })
        expect(splitWindows(longer, LATER)[windows.length]?.until).toBeGreaterThan(ripe)
      } else if (until !== 'now' && until <= ripe) expect(last).toBe(Math.max(from, until))
      else expect(last).toBe(Math.max(from, hourOf(ripe)))
    }),
    { numRuns: cases(1000, 200) },
  )
})

it('limits the number of windows', () => {
  const hourly = settings({ from: at('0001-01-01'), every: { unit: 'hour', count: 1 } })
  expect(() => splitWindows(hourly, LATER)).toThrow(
    expect.toSatisfy((error) => isExportError(error, 'config')),
  )
})

const ofFeed = fc.constantFrom<WindowLength>(
  { unit: 'month' },
  { unit: 'year' },
  { unit: 'week' },
  { unit: 'day', count: 3 },
  { unit: 'hour', count: 7 },
)
// From the year 1 to the year 9999; beyond 2^53 as a 64-bit integer.
const anyInstant = fc
  .bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_798_999_999n })
  .map((at) => (Number.isSafeInteger(Number(at)) ? Number(at) : at))

test('the window of an instant holds it, is that of its own bounds, and can be read from its name', () => {
  fc.assert(
    fc.property(anyInstant, ofFeed, (at, every) => {
      const window = windowAt(at, every)
      expect(window.from <= at && at < window.until).toBe(true)
      expect(windowAt(window.from, every)).toEqual(window)
      expect(parseWindow(windowRange(window))).toEqual(window)
    }),
  )
})
