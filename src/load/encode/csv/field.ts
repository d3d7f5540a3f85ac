import type { ByteBuffer } from '../byte-buffer.ts'
import { REPLACED_NUL } from './nuls.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const APOSTROPHE = 0x27
const TAB = 0x09
/** Of what a byte makes necessary. */
const QUOTES = 1
const REPLACEMENT = 2

/** What a byte makes of a field that has it. */
const NEEDS = new Uint8Array(256)
for (const byte of [QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN]) NEEDS[byte] = QUOTES
NEEDS[0] = REPLACEMENT

/** What a spreadsheet takes for the start of a formula: `=`, `+`, `-`, `@`, tab, carriage return. */
const STARTS_FORMULA = new Uint8Array(256)
for (const byte of [0x3d, 0x2b, 0x2d, 0x40, TAB, CARRIAGE_RETURN]) STARTS_FORMULA[byte] = 1

/**
 * Appends a text as one CSV field, in quotes where it needs them and where it is empty: nothing at all
 * is null; a NUL becomes U+FFFD. `escapeFormulas` puts `'` before what a spreadsheet would run.
 */
export function writeTextField(
  out: ByteBuffer,
  text: Uint8Array,
  from: number,
  to: number,
  escapeFormulas: boolean,
): void {
  // Every byte may be a quote that is doubled.
  out.reserve((to - from) * 2 + 3)
  const bytes = out.bytes
  const start = out.length
  let at = start
  if (escapeFormulas && from < to && STARTS_FORMULA[text[from]!] === 1) bytes[at++] = APOSTROPHE
  let needs = from === to ? QUOTES : 0
  for (let i = from; i < to; i++) {
    const byte = text[i]!
    needs |= NEEDS[byte]!
    bytes[at++] = byte
  }
  if ((needs & REPLACEMENT) !== 0) writeWithoutNuls(out, text.subarray(from, to), escapeFormulas)
  else out.length = needs === 0 ? at : quoteField(bytes, start, at)
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

/** Puts the field at `[start, end)` in quotes and doubles those in it; returns its new end. */
export function quoteField(bytes: Uint8Array, start: number, end: number): number {
  let quotes = 0
  for (let i = start; i < end; i++) if (bytes[i] === QUOTE) quotes++
  const newEnd = end + quotes + 2
  // From the end, as the field grows in place.
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
