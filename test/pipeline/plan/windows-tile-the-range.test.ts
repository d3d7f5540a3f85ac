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

describe('the end of the range', () => {
  const now = at('2024-03-20T10:40:00Z')

  it('with until: now leaves out windows that ended less than the lag ago', () => {
    const hourly = settings({
      from: at('2024-03-20T07:30:00Z'),
      until: 'now',
      every: { unit: 'hour', count: 1 },
    })
    const ends = (lagMs: number) =>
      splitWindows({ ...hourly, lagMs }, now).map(({ until }) => formatInstant(until))
    expect(ends(0)).toEqual(['2024-03-20T08:30:00Z', '2024-03-20T09:30:00Z', '2024-03-20T10:30:00Z'])
    expect(ends(10 * 60_000)).toEqual(ends(0))
    expect(ends(10 * 60_000 + 1)).toEqual(ends(0).slice(0, 2))
    expect(ends(24 * 3_600_000)).toEqual([])
  })

  it('with until: now and no length is the last full hour before the lag', () => {
    const windows = splitWindows(settings({ until: 'now', every: null, lagMs: 45 * 60_000 }), now)
    expect(show(windows)).toEqual(['2024-01-01T00:00:00Z 2024-03-20T09:00:00Z'])
  })

  it('in the future is moved to the last full hour', () => {
    const windows = splitWindows(settings({ lagMs: 15 * 60_000 }), now)
    expect(show(windows).at(-1)).toBe('2024-03-01T00:00:00Z 2024-03-20T10:00:00Z')
  })

  it('in the past is kept to the microsecond', () => {
    const until = now - 900_000_000
    expect(splitWindows(settings({ until, lagMs: 15 * 60_000 }), now).at(-1)?.until).toBe(until)
  })

  it('is never later than now less the lag, and before that only an incomplete window is left out', () => {
    const until = fc.oneof(fc.constant('now' as const), instant)
    fc.assert(
      fc.property(
        range,
        until,
        fc.option(length),
        fc.nat({ max: 100 * 3_600_000 }),
        (r, end, every, lagMs) => {
          const windows = splitWindows(settings({ from: r.from, until: end, every, lagMs }), r.until)
          const ripe = r.until - lagMs * 1000
          const last = windows.at(-1)?.until ?? r.from
          if (windows.length > 0) expect(last).toBeLessThanOrEqual(ripe)
          if (windows.length > 0) expectTiling(windows, r.from, last)
          const latest = end === 'now' ? ripe : Math.min(end, ripe)
          if (end === 'now' && every !== null) {
            const next = splitWindows(
              settings({ from: r.from, until: Math.max(ripe, r.from) + 400 * DAY, every }),
              LATER,
            )[windows.length]
            expect(next?.until ?? 0).toBeGreaterThan(ripe)
          } else expect(latest - last).toBeLessThan(HOUR)
        },
      ),
      { numRuns: 60 },
    )
  })
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
