import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatInstant, parseInstant } from '../../src/core/index.ts'
import { ago, parseAge } from '../../src/pipeline/index.ts'

it.each([
  ['1mo', '2026-03-31T10:30:00.999999Z', '2026-02-28T10:30:00Z'],
  ['1mo', '2024-03-31', '2024-02-29T00:00:00Z'],
  ['24mo', '2026-11-22T12:00:00Z', '2024-11-22T12:00:00Z'],
  ['12mo', '2025-01-31', '2024-01-31T00:00:00Z'],
  ['1y', '2024-02-29', '2023-02-28T00:00:00Z'],
  ['2w', '2024-01-10', '2023-12-27T00:00:00Z'],
  ['90d', '2024-03-31T23:59:59Z', '2024-01-01T23:59:59Z'],
])('%s before %s is %s', (age, now, then) => {
  expect(formatInstant(ago(parseAge(age)!, parseInstant(now)! / 1000))).toBe(then)
})

it.each(['', '0d', '24', '24m', '1.5y', '-1d', ' 1d', '1d ', '10000d', '1mo2d', '24MO'])(
  '%j is not an age',
  (text) => {
    expect(parseAge(text)).toBeNull()
  },
)

it('a longer age is never a later time, and the longest is before all windows', () => {
  const unit = fc.constantFrom('d', 'w', 'mo', 'y')
  const count = fc.integer({ min: 1, max: 9999 })
  const instant = fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  fc.assert(
    fc.property(unit, count, count, instant, (unit, one, other, now) => {
      const [less, more] = [Math.min(one, other), Math.max(one, other)]
      const at = (count: number): number => ago(parseAge(`${count}${unit}`)!, now.getTime())
      expect(at(more)).toBeLessThanOrEqual(at(less))
      expect(at(less)).toBeLessThan(now.getTime() * 1000)
      expect(Number.isSafeInteger(at(more))).toBe(true)
    }),
  )
})
