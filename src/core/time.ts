/**
 * Timestamps are whole microseconds since the Unix epoch, UTC, held in a plain number: exact from the year 1684 to
 * 2255 (2^53 µs either way), before that to within four microseconds, and always for whole seconds. JavaScript's Date
 * keeps milliseconds only, and the service sends microseconds.
 */
export type Micros = number

// Years 1..2255; after that not even the service's own times would be exact.
const MIN_MICROS = -62_135_596_800_000_000
const MAX_MICROS = Number.MAX_SAFE_INTEGER

const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/

/**
 * Parses an ISO 8601 date or date-time to microseconds UTC; a date alone is its midnight, a date-time
 * without an offset is taken as UTC. Digits beyond microseconds are cut off.
 * Source: service spec 2.2, `imported_at` (fractional seconds and a UTC offset).
 * @returns null when the text is no such timestamp or no such day exists
 */
export function parseTimestamp(text: string): Micros | null {
  const match = TIMESTAMP.exec(text)
  if (match === null) return null
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', offset] = match
  const seconds = utcSeconds(
    Number(year),
    Number(month),
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
  )
  if (seconds === null) return null
  const offsetMinutes = parseOffsetMinutes(offset)
  if (offsetMinutes === null) return null
  const micros = Number(fraction.slice(0, 6).padEnd(6, '0'))
  const result = (seconds - offsetMinutes * 60) * 1_000_000 + micros
  return result >= MIN_MICROS && result <= MAX_MICROS ? result : null
}

/** `2024-07-22T19:25:52.893439Z`: always six digits of fraction, always UTC. */
export function formatTimestamp(micros: Micros): string {
  const ms = Math.floor(micros / 1000)
  const rest = micros - ms * 1000
  return `${new Date(ms).toISOString().slice(0, -1)}${String(rest).padStart(3, '0')}Z`
}

/** `2024-01-01T00:00:00Z`, with a fraction only where there is one: the form the service's filters get. */
export function formatInstant(micros: Micros): string {
  const text = formatTimestamp(micros)
  return text.endsWith('.000000Z') ? `${text.slice(0, 19)}Z` : text
}

function utcSeconds(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | null {
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null
  if (hour > 23 || minute > 59 || second > 59) return null
  return daysFromEpoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days between 1970-01-01 and a proleptic Gregorian date (a year that starts in March makes leap days come last). */
function daysFromEpoch(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

function parseOffsetMinutes(offset: string | undefined): number | null {
  if (offset === undefined || offset === 'Z' || offset === 'z') return 0
  const digits = offset.slice(1).replace(':', '')
  const hours = Number(digits.slice(0, 2))
  const minutes = Number(digits.slice(2) || '0')
  if (hours > 23 || minutes > 59) return null
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}
