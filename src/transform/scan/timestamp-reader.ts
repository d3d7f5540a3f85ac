import { type Micros, parseInstant } from '../../core/index.ts'
import { DOT, isDigit, MINUS, ZERO } from './json-scanner.ts'

/** Characters of `2024-07-22T19:25:52`. */
const TO_SECONDS = 19
const MAX_KNOWN_DAYS = 4096
const MICROS_PER_MINUTE = 60_000_000

/**
 * Reads the timestamps that the service writes (`2024-07-22T19:25:52.893439+00:00`, also `Z` and other
 * fractions) from bytes. A page's rows share few days, so days go through core's parser once each and the
 * rest is arithmetic. Whatever looks different is not understood here, whether valid or not.
 */
export class TimestampReader {
  private readonly days = new Map<number, Micros | null>()
  private lastDay = -1
  private lastMidnight: Micros | null = null

  /** @returns null when the text at [start, end) is not understood */
  read(bytes: Buffer, start: number, end: number): Micros | null {
    if (end - start <= TO_SECONDS) return null
    if (bytes[start + 10] !== 0x54 || bytes[start + 13] !== 0x3a || bytes[start + 16] !== 0x3a) return null
    const midnight = this.midnight(bytes, start)
    const hour = twoDigits(bytes, start + 11)
    const minute = twoDigits(bytes, start + 14)
    const second = twoDigits(bytes, start + 17)
    if (
      midnight === null ||
      hour < 0 ||
      hour > 23 ||
      minute < 0 ||
      minute > 59 ||
      second < 0 ||
      second > 59
    ) {
      return null
    }
    let at = start + TO_SECONDS
    let fraction = 0
    if (bytes[at] === DOT) {
      const first = ++at
      for (let scale = 100_000; isDigit(bytes[at]!); at++, scale /= 10) {
        if (scale >= 1) fraction += (bytes[at]! - ZERO) * scale
      }
      if (at === first || at > first + 9) return null
    }
    const offset = offsetMinutes(bytes, at, end)
    if (offset === null) return null
    const seconds = hour * 3600 + minute * 60 + second
    return midnight + seconds * 1_000_000 + fraction - offset * MICROS_PER_MINUTE
  }

  private midnight(bytes: Buffer, start: number): Micros | null {
    const century = twoDigits(bytes, start)
    const year = twoDigits(bytes, start + 2)
    const month = twoDigits(bytes, start + 5)
    const day = twoDigits(bytes, start + 8)
    // Far from both ends of the exact range, no offset can lead out of it.
    if (century < 19 || century > 21 || year < 0 || month < 0 || day < 0) return null
    if (bytes[start + 4] !== MINUS || bytes[start + 7] !== MINUS) return null
    const key = ((century * 100 + year) * 100 + month) * 100 + day
    if (key === this.lastDay) return this.lastMidnight
    let midnight = this.days.get(key)
    if (midnight === undefined) {
      midnight = parseInstant(bytes.toString('latin1', start, start + 10))
      if (this.days.size >= MAX_KNOWN_DAYS) this.days.clear()
      this.days.set(key, midnight)
    }
    this.lastDay = key
    this.lastMidnight = midnight
    return midnight
  }
}

/** `Z` or `+hh:mm` up to exactly `end`. */
function offsetMinutes(bytes: Uint8Array, at: number, end: number): number | null {
  if (bytes[at] === 0x5a) return at + 1 === end ? 0 : null
  if (at + 6 !== end || bytes[at + 3] !== 0x3a) return null
  const hours = twoDigits(bytes, at + 1)
  const minutes = twoDigits(bytes, at + 4)
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return null
  if (bytes[at] === 0x2b) return hours * 60 + minutes
  return bytes[at] === MINUS ? -(hours * 60 + minutes) : null
}

/** 0..99, or -1 when there are no two digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - ZERO
  const ones = bytes[at + 1]! - ZERO
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1
}
