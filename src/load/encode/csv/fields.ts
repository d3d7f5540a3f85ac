import { formatTimestamp, type Int64 } from '../../../core/index.ts'
import type { ByteBuffer } from '../byte-buffer.ts'

const QUOTE = 0x22
export const COMMA = 0x2c
export const LINE_FEED = 0x0a
const ZERO = 0x30
const CARRIAGE_RETURN = 0x0d
const APOSTROPHE = 0x27
const TAB = 0x09
const DAY_MICROS = 86_400_000_000

/** U+FFFD, which replaces a NUL: PostgreSQL and pyarrow reject CSV files with NULs. */
export const REPLACED_NUL = Buffer.from('\ufffd')

const QUOTES = 1
const REPLACEMENT = 2

/** By byte: what a field needs that contains it. */
const NEEDS = new Uint8Array(256)
for (const byte of [QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN]) NEEDS[byte] = QUOTES
NEEDS[0] = REPLACEMENT

/** 1 for the bytes with which formulas of spreadsheets start: `=`, `+`, `-`, `@`, tab, carriage return. */
const STARTS_FORMULA = new Uint8Array(256)
for (const byte of [0x3d, 0x2b, 0x2d, 0x40, TAB, CARRIAGE_RETURN]) STARTS_FORMULA[byte] = 1

/** Null is an empty field without quotes. `escapeFormulas` also escapes what looks escaped: readers can undo it. */
export function writeTextField(
  out: ByteBuffer,
  text: Uint8Array,
  from: number,
  to: number,
  escapeFormulas: boolean,
): void {
  // At worst, every byte is a quote that is doubled.
  out.reserve((to - from) * 2 + 3)
  const bytes = out.bytes
  const start = out.length
  let at = start
  if (escapeFormulas && startsFormula(text, from, to)) bytes[at++] = APOSTROPHE
  let needs = from === to ? QUOTES : 0
  for (let i = from; i < to; i++) {
    const byte = text[i]!
    needs |= NEEDS[byte]!
    bytes[at++] = byte
  }
  if ((needs & REPLACEMENT) !== 0) writeWithoutNuls(out, text.subarray(from, to), escapeFormulas)
  else out.length = needs === 0 ? at : quoteField(bytes, start, at)
}

function startsFormula(text: Uint8Array, from: number, to: number): boolean {
  let at = from
  while (at < to && text[at] === APOSTROPHE) at++
  return at < to && STARTS_FORMULA[text[at]!] === 1
}

function writeWithoutNuls(out: ByteBuffer, text: Uint8Array, escapeFormulas: boolean): void {
  const clean = Buffer.alloc(text.length * REPLACED_NUL.length)
  let length = 0
  for (const byte of text) {
    if (byte === 0) {
      clean.set(REPLACED_NUL, length)
      length += REPLACED_NUL.length
    } else clean[length++] = byte
  }
  writeTextField(out, clean, 0, length, escapeFormulas)
}

/** Encloses the field at `[start, end)` in quotes and doubles the quotes in it; returns its new end. */
export function quoteField(bytes: Uint8Array, start: number, end: number): number {
  let quotes = 0
  for (let i = start; i < end; i++) if (bytes[i] === QUOTE) quotes++
  const newEnd = end + quotes + 2
  // Moves bytes from the end on, since the field grows in its own memory.
  let to = newEnd
  bytes[--to] = QUOTE
  for (let i = end - 1; i >= start; i--) {
    const byte = bytes[i]!
    bytes[--to] = byte
    if (byte === QUOTE) bytes[--to] = QUOTE
  }
  bytes[--to] = QUOTE
  return newEnd
}

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

/** Writes timestamps as `2024-07-22T19:25:52.893439Z`, like formatTimestamp. The day of the last one is cached. */
export class TimestampField {
  #day = Number.NaN
  readonly #date = new Uint8Array(10)

  write(out: ByteBuffer, micros: Int64): void {
    out.reserve(27)
    // Timestamps that a double cannot hold are rare: some people write such a century for "never".
    if (typeof micros === 'bigint') {
      out.length += out.bytes.write(formatTimestamp(micros), out.length, 'latin1')
      return
    }
    let day = Math.floor(micros / DAY_MICROS)
    let inDay = micros - day * DAY_MICROS
    // For years far from 1970, the quotient may have been rounded up to the next day.
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
