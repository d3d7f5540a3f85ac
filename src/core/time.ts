import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type Int64, int64 } from './collections.ts'

export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds of a monotonic clock; only differences are meaningful. */
  monotonicMs(): number
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, signal) => {
    // Each wait listens to it: many are no leak.
    setMaxListeners(0, signal)
    try {
      // A timer of more than 2^31-1 ms fires immediately, so a long wait is split into days.
      for (let left = ms; left > 0; left -= 86_400_000) {
        await delay(Math.min(left, 86_400_000), undefined, { signal })
      }
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
  },
}

/** Milliseconds. Within the 250 of Node.js a slow host is never reached if one of its two addresses has no route. */
export const ADDRESS_ATTEMPT_MS = 2500

/** Microseconds since 1970, UTC: exact from 1684 to 2255, as whole seconds always. Times of rows are {@link Int64}. */
export type Micros = number

/** 0001-01-01 and 10000-01-01: a year has four digits. */
const FIRST_SECOND = -62_135_596_800
const END_SECOND = 253_402_300_800

const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/

/**
 * A date alone is midnight, no offset UTC; digits beyond microseconds are cut. Source: service spec 2.2, `imported_at`.
 * @returns null if the string is not a timestamp, the day does not exist, or the year is not 1 to 9999
 */
export function parseTimestamp(text: string): Int64 | null {
  const match = TIMESTAMP.exec(text)
  if (match === null) return null
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', offset] = match
  const localSeconds = utcSeconds(
    Number(year),
    Number(month),
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
  )
  if (localSeconds === null) return null
  const offsetMinutes = parseOffsetMinutes(offset)
  if (offsetMinutes === null) return null
  const micros = Number(fraction.slice(0, 6).padEnd(6, '0'))
  const seconds = localSeconds - offsetMinutes * 60
  if (seconds < FIRST_SECOND || seconds >= END_SECOND) return null
  const result = seconds * 1_000_000 + micros
  return Number.isSafeInteger(result) ? result : int64(BigInt(seconds) * 1_000_000n + BigInt(micros))
}

/** The same as a plain number; null also if a number is not exact. */
export function parseInstant(text: string): Micros | null {
  const at = parseTimestamp(text)
  if (at === null || typeof at === 'number') return at
  const micros = Number(at)
  return micros < 0 && BigInt(micros) === at ? micros : null
}

/** `2024-07-22T19:25:52.893439Z`: always six digits of fraction, always UTC. */
export function formatTimestamp(micros: Int64): string {
  const at = int64(micros)
  const rest =
    typeof at === 'number' ? at - Math.floor(at / 1000) * 1000 : Number(((at % 1000n) + 1000n) % 1000n)
  const ms = typeof at === 'number' ? Math.floor(at / 1000) : Number((at - BigInt(rest)) / 1000n)
  return `${new Date(ms).toISOString().slice(0, -1)}${String(rest).padStart(3, '0')}Z`
}

/** `2024-01-01T00:00:00Z`, with a fraction only if it is not zero. The service's filters have this form. */
export function formatInstant(micros: Int64): string {
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
  if (year < 1 || hour > 23 || minute > 59 || second > 59) return null
  // Years below 100 would mean those after 1900. The calendar repeats every 400 years.
  const date = new Date(Date.UTC(year + 400, month - 1, day, hour, minute, second))
  // A day that does not exist becomes one of the next month.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null
  return date.getTime() / 1000 - SECONDS_IN_400_YEARS
}

const SECONDS_IN_400_YEARS = 146_097 * 86_400

function parseOffsetMinutes(offset: string | undefined): number | null {
  if (offset === undefined || offset === 'Z' || offset === 'z') return 0
  const digits = offset.slice(1).replace(':', '')
  const hours = Number(digits.slice(0, 2))
  const minutes = Number(digits.slice(2) || '0')
  if (hours > 23 || minutes > 59) return null
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}

/** A calendar month, UTC: `2024-01`. The string order is the order of time. */
export type Month = string

export function monthOf(epochMs: number): Month {
  return new Date(epochMs).toISOString().slice(0, 7)
}

export type Age = { readonly months: number; readonly days: number }
