import { DOT, isDigit, MINUS, ZERO } from './json'

/** Characters of `2024-07-22T19:25:52`. */
const TO_SECONDS: usize = 19
const MICROS_PER_SECOND: i64 = 1_000_000
const SECONDS_PER_DAY: i64 = 86_400

export const NO_TIME: i64 = i64.MIN_VALUE

// A page's rows share few days: the characters of the one before, and when it began.
let lastYear: u64 = 0
let lastDay: u16 = 0
let lastMidnight: i64 = 0

/** @returns microseconds since the epoch; {@link NO_TIME} for what does not look as the service writes it */
export function timestamp(start: usize, end: usize): i64 {
  if (end - start <= TO_SECONDS) return NO_TIME
  if (load<u8>(start, 10) !== 0x54 || load<u8>(start, 13) !== 0x3a || load<u8>(start, 16) !== 0x3a)
    return NO_TIME
  if (!isKnownDay(start)) return NO_TIME
  const hour = twoDigits(start + 11)
  const minute = twoDigits(start + 14)
  const second = twoDigits(start + 17)
  // What are no digits is more than any of these.
  if (hour > 23 || minute > 59 || second > 59) return NO_TIME
  let at = start + TO_SECONDS
  let fraction: u32 = 0
  if (load<u8>(at) === DOT) {
    const first = ++at
    let scale: u32 = 100_000
    for (; isDigit(load<u8>(at)); at++) {
      fraction += <u32>(load<u8>(at) - ZERO) * scale
      scale /= 10
    }
    if (at === first || at > first + 9) return NO_TIME
  }
  let offset: i64 = 0
  if (load<u8>(at) === 0x5a) {
    if (at + 1 !== end) return NO_TIME
  } else {
    if (at + 6 !== end || load<u8>(at, 3) !== 0x3a) return NO_TIME
    const hours = twoDigits(at + 1)
    const minutes = twoDigits(at + 4)
    if (hours > 23 || minutes > 59) return NO_TIME
    offset = <i64>(hours * 60 + minutes)
    if (load<u8>(at) === MINUS) offset = -offset
    else if (load<u8>(at) !== 0x2b) return NO_TIME
  }
  const seconds = <i64>(hour * 3600 + minute * 60 + second) - offset * 60
  return (lastMidnight + seconds) * MICROS_PER_SECOND + <i64>fraction
}

/** Makes the day at `start` the last one, if there is one: `2024-07-22`. */
function isKnownDay(start: usize): bool {
  const writtenYear = load<u64>(start)
  const writtenDay = load<u16>(start, 8)
  if (writtenYear === lastYear && writtenDay === lastDay) return true
  if (load<u8>(start, 4) !== MINUS || load<u8>(start, 7) !== MINUS) return false
  const century = twoDigits(start)
  const yearOfCentury = twoDigits(start + 2)
  const month = twoDigits(start + 5)
  const day = twoDigits(start + 8)
  // Far from both ends of the exact range, no offset can lead out of it.
  if (century < 19 || century > 21 || yearOfCentury > 99 || month < 1 || month > 12) return false
  const year = <i32>(century * 100 + yearOfCentury)
  if (day < 1 || day > daysInMonth(year, month)) return false
  lastYear = writtenYear
  lastDay = writtenDay
  lastMidnight = <i64>daysFromEpoch(year, <i32>month, <i32>day) * SECONDS_PER_DAY
  return true
}

/** 0 to 99, or more when there are no two digits. */
function twoDigits(at: usize): u32 {
  const tens = <u32>load<u8>(at) - ZERO
  const ones = <u32>load<u8>(at, 1) - ZERO
  return tens <= 9 && ones <= 9 ? tens * 10 + ones : 1000
}

function daysInMonth(year: i32, month: u32): u32 {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days between 1970-01-01 and a day (a year that starts in March makes leap days come last). */
function daysFromEpoch(year: i32, month: i32, day: i32): i32 {
  const marchYear = month <= 2 ? year - 1 : year
  const era = marchYear / 400
  const yearOfEra = marchYear - era * 400
  const dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
  const dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}
