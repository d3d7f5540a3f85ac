import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseWindow, type WindowLength, windowRange } from '../../../src/core/index.ts'
import { windowAt } from '../../../src/pipeline/index.ts'

const length = fc.constantFrom<WindowLength>(
  { unit: 'month' },
  { unit: 'year' },
  { unit: 'week' },
  { unit: 'day', count: 3 },
  { unit: 'hour', count: 7 },
)
// From the year 1 to the year 9999; beyond 2^53 as a 64-bit integer.
const instant = fc
  .bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_798_999_999n })
  .map((at) => (Number.isSafeInteger(Number(at)) ? Number(at) : at))

test('the window of an instant holds it, is that of its own bounds, and can be read from its name', () => {
  fc.assert(
    fc.property(instant, length, (at, every) => {
      const window = windowAt(at, every)
      expect(window.from <= at && at < window.until).toBe(true)
      expect(windowAt(window.from, every)).toEqual(window)
      expect(parseWindow(windowRange(window))).toEqual(window)
    }),
  )
})
