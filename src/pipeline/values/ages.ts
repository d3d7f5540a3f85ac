import { type Age, ExportError, type Micros, type Pipeline } from '../../core/index.ts'

export const AGE_PATTERN = /^([1-9]\d{0,3})(d|w|mo|y)$/
export const AGE_EXPECTED = '<n>d, <n>w, <n>mo or <n>y, such as 24mo'

/** What the units are, in months and days. */
const UNITS = { d: [0, 1], w: [0, 7], mo: [1, 0], y: [12, 0] } as const

/** Parses `90d`, `6w`, `24mo`, `2y`; null: not an age. */
export function parseAge(text: string): Age | null {
  const [, count, unit] = AGE_PATTERN.exec(text) ?? []
  if (unit === undefined) return null
  const [months, days] = UNITS[unit as keyof typeof UNITS]
  return { months: months * Number(count), days: days * Number(count) }
}

/** When the windows ended that `prune` removes. @param olderThan undefined: `load.keep` @throws ExportError `config` */
export function pruneBefore({ load, file }: Pipeline, olderThan: string | undefined, nowMs: number): Micros {
  const age = olderThan === undefined ? load.keep : parseAge(olderThan)
  if (age !== null) return ago(age, nowMs)
  throw new ExportError({
    kind: 'config',
    what:
      olderThan === undefined
        ? 'Nothing says how old partitions may become'
        : `older-than: expected ${AGE_EXPECTED}`,
    where: file,
    next: 'Give it as older-than, such as 24mo, or set load.keep in the file.',
  })
}

/** An age before now, to the second: the same time and day of an earlier month, or its last day if it is shorter. */
export function ago({ months, days }: Age, nowMs: number): Micros {
  const then = new Date(nowMs - days * DAY_MS)
  const day = then.getUTCDate()
  then.setUTCMilliseconds(0)
  then.setUTCMonth(then.getUTCMonth() - months)
  // The day that a shorter month lacks is one of the next month.
  if (then.getUTCDate() !== day) then.setUTCDate(0)
  return Math.max(EARLIEST, then.getTime() * 1000)
}

/** The first whole second that is exact. No window begins before. */
const EARLIEST = Math.ceil(Number.MIN_SAFE_INTEGER / 1_000_000) * 1_000_000

const DAY_MS = 86_400_000
