import type { Age, Micros } from '../../core/index.ts'

export const AGE_PATTERN = /^([1-9]\d{0,3})(d|w|mo|y)$/
export const AGE_EXPECTED = '<n>d, <n>w, <n>mo or <n>y, such as 24mo'

/** Parses `90d`, `6w`, `24mo`, `2y`; null: not an age. */
export function parseAge(text: string): Age | null {
  const match = AGE_PATTERN.exec(text)
  if (match === null) return null
  const count = Number(match[1])
  switch (match[2]) {
    case 'd':
      return { months: 0, days: count }
    case 'w':
      return { months: 0, days: 7 * count }
    case 'mo':
      return { months: count, days: 0 }
    default:
      return { months: 12 * count, days: 0 }
  }
}

/**
 * The instant an age before now, to the second: the same time and day of an earlier month, or the last day of that month
 * if it is shorter.
 */
export function ago({ months, days }: Age, nowMs: number): Micros {
  const then = new Date(nowMs - days * DAY_MS)
  const day = then.getUTCDate()
  then.setUTCMilliseconds(0)
  then.setUTCMonth(then.getUTCMonth() - months, 1)
  const last = new Date(then)
  last.setUTCMonth(last.getUTCMonth() + 1, 0)
  then.setUTCDate(Math.min(day, last.getUTCDate()))
  return Math.max(EARLIEST, then.getTime() * 1000)
}

/** The first whole second that is exact. No window begins before. */
const EARLIEST = Math.ceil(Number.MIN_SAFE_INTEGER / 1_000_000) * 1_000_000

const DAY_MS = 86_400_000
