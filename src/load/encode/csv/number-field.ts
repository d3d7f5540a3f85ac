import { formatTimestamp, type Int64 } from '../../../core/index.ts'
import type { ByteBuffer } from '../byte-buffer.ts'

const ZERO = 0x30
const DAY_MICROS = 86_400_000_000

/** Appends an integer in decimal digits. */
export function writeInteger(out: ByteBuffer, value: Int64): void {
  out.reserve(24)
  if (typeof value === 'bigint') {
    out.length += out.bytes.write(String(value), out.length, 'latin1')
    return
  }
  const bytes = out.bytes
  if (value < 0) bytes[out.length++] = 0x2d
  let rest = Math.abs(value)
  let digits = 1
  for (let limit = 10; rest >= limit; limit *= 10) digits++
  let at = out.length + digits
  out.length = at
  // Division is fast only for small numbers.
  while (rest > 0x7fffffff) {
    const quotient = Math.floor(rest / 10)
    bytes[--at] = ZERO + (rest - quotient * 10)
    rest = quotient
  }
  for (let i = at - (out.length - digits); i > 0; i--) {
    bytes[--at] = ZERO + (rest % 10)
    rest = (rest / 10) | 0
  }
}

/** Writes timestamps as `2024-07-22T19:25:52.893439Z`, as formatTimestamp does; days are worked out once in a row. */
export class TimestampField {
  #day = Number.NaN
  readonly #date = new Uint8Array(10)

  write(out: ByteBuffer, micros: Int64): void {
    out.reserve(27)
    // What no double holds is rare: a century that people write for "never".
    if (typeof micros === 'bigint') {
      out.length += out.bytes.write(formatTimestamp(micros), out.length, 'latin1')
      return
    }
    let day = Math.floor(micros / DAY_MICROS)
    let inDay = micros - day * DAY_MICROS
    // The quotient may have been rounded up to a whole day, for years far from 1970.
    if (inDay < 0) {
      day--
      inDay += DAY_MICROS
    }
    if (day !== this.#day) this.#setDay(day)
    const bytes = out.bytes
    let at = out.length
    const date = this.#date
    for (let i = 0; i < 10; i++) bytes[at++] = date[i]!
    const seconds = Math.floor(inDay / 1_000_000)
    const fraction = inDay - seconds * 1_000_000
    bytes[at++] = 0x54
    at = twoDigits(bytes, at, (seconds / 3600) | 0)
    bytes[at++] = 0x3a
    at = twoDigits(bytes, at, ((seconds / 60) | 0) % 60)
    bytes[at++] = 0x3a
    at = twoDigits(bytes, at, seconds % 60)
    bytes[at++] = 0x2e
    at = twoDigits(bytes, at, (fraction / 10_000) | 0)
    at = twoDigits(bytes, at, ((fraction / 100) | 0) % 100)
    at = twoDigits(bytes, at, fraction % 100)
    bytes[at++] = 0x5a
    out.length = at
  }

  #setDay(day: number): void {
    const text = new Date(day * 86_400_000).toISOString()
    for (let i = 0; i < 10; i++) this.#date[i] = text.charCodeAt(i)
    this.#day = day
  }
}

function twoDigits(bytes: Uint8Array, at: number, value: number): number {
  const tens = (value / 10) | 0
  bytes[at] = ZERO + tens
  bytes[at + 1] = ZERO + (value - tens * 10)
  return at + 2
}
