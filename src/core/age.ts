import type { Micros } from './time.ts'

/** How old something is, by the UTC calendar. */
export type Age = { readonly months: number; readonly days: number }

export const AGE_PATTERN = /^([1-9]\d{0,3})(d|w|mo|y)$/
export const AGE_EXPECTED = '<n>d, <n>w, <n>mo or <n>y, such as 24mo'

/** `90d`, `6w`, `24mo`, `2y`; null when it is none. */
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
 * The instant that is so long ago: the same day of an earlier month and the same time, or that month's last day where it
 * has fewer.
 */
export function ago({ months, days }: Age, now: Micros): Micros {
  const ms = Math.floor(now / 1000)
  const then = new Date(ms - days * DAY_MS)
  const day = then.getUTCDate()
  then.setUTCMonth(then.getUTCMonth() - months, 1)
  const last = new Date(then)
  last.setUTCMonth(last.getUTCMonth() + 1, 0)
  then.setUTCDate(Math.min(day, last.getUTCDate()))
  // No window begins before that.
  return Math.max(Number.MIN_SAFE_INTEGER, then.getTime() * 1000 + (now - ms * 1000))
}

const DAY_MS = 86_400_000
