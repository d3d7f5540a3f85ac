import { randomUUID } from 'node:crypto'
import { int64 } from '../../core/index.ts'
import { QUOTE, skipString } from './json-steps.ts'

/** A mantissa of fewer characters is exact in a double, or is no integer there either, unless it is rounded to 0. */
const LONG = 16
/** Of the shortest number that is rounded to 0, `1e-324`. */
const SHORTEST = 6
/** Nobody needs more digits of a number that no column can hold. */
const MAX_DIGITS = 10_240
/** Two for each item that a page can have. More would fill the memory: they become infinite, so no integers. */
const MAX_NUMBERS = 200_000

/** 1 where a byte may be part of a number. */
const IN_NUMBER = new Uint8Array(256)
for (const character of '0123456789+-.eE') IN_NUMBER[character.charCodeAt(0)] = 1

/** 1 where the byte may be part of a number before the exponent. */
const IN_MANTISSA = new Uint8Array(256)
for (const character of '0123456789-.') IN_MANTISSA[character.charCodeAt(0)] = 1

/** 1 where the byte may come right before or right behind that. */
const AROUND_MANTISSA = new Uint8Array(256)
for (const character of ':,[]} \t\r\neE') AROUND_MANTISSA[character.charCodeAt(0)] = 1

/** Stands before the digits of a number while JSON.parse has them as a text; nobody outside can know it. */
const MARK = `${randomUUID()}:`
const INFINITE = '1e999'

/**
 * JSON.parse of the bytes [start, end), but for numbers that it would round: whole ones become bigints, and what only
 * looks whole once it is rounded becomes NaN, so that it does not pass for an integer.
 * @throws SyntaxError as JSON.parse
 */
export function parseExactJson(bytes: Buffer, start = 0, end = bytes.length): unknown {
  const value: unknown = JSON.parse(bytes.toString('utf8', start, end))
  if (!mayHoldLongNumbers(bytes, start, end) && !mayHoldSmallNumbers(bytes.subarray(start, end))) return value
  const numberOffsets = roundedNumbers(bytes, start, end)
  if (numberOffsets.length === 0) return value
  return restored(JSON.parse(marked(bytes, start, end, numberOffsets)))
}

/** Whether there is what may be a number with a negative exponent. */
function mayHoldSmallNumbers(bytes: Buffer): boolean {
  for (const sign of ['e-', 'E-']) {
    for (let at = bytes.indexOf(sign); at >= 0; at = bytes.indexOf(sign, at + 2)) {
      if (IN_NUMBER[bytes[at - 1]!] === 1 && IN_NUMBER[bytes[at + 2]!] === 1) return true
    }
  }
  return false
}

/**
 * Whether there is a run of characters as long as such a number, between characters that may surround one. Such a
 * run has a character at every sixteenth offset, so most bytes need not be read.
 */
function mayHoldLongNumbers(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start + LONG - 1; at < end; at += LONG) {
    if (IN_MANTISSA[bytes[at]!] === 0) continue
    // The run has eight more characters, on one side at least.
    if (IN_MANTISSA[bytes[at - LONG / 2]!] === 0 && IN_MANTISSA[bytes[at + LONG / 2]!] !== 1) continue
    let first = at
    while (first > start && IN_MANTISSA[bytes[first - 1]!] === 1) first--
    const last = runEnd(bytes, at, end, IN_MANTISSA)
    const isAlone =
      (first === start || AROUND_MANTISSA[bytes[first - 1]!] === 1) &&
      (last === end || AROUND_MANTISSA[bytes[last]!] === 1)
    if (last - first >= LONG && isAlone) return true
    at = last
  }
  return false
}

function runEnd(bytes: Buffer, start: number, end: number, kind: Uint8Array): number {
  let at = start
  while (at < end && kind[bytes[at]!] === 1) at++
  return at
}

/** Start and end of every number in valid JSON that JSON.parse rounds to an integer, one after the other. */
function roundedNumbers(bytes: Buffer, start: number, end: number): number[] {
  const numberOffsets: number[] = []
  let at = start
  while (at < end) {
    if (bytes[at] === QUOTE) at = skipString(bytes, at)
    else if (IN_NUMBER[bytes[at]!] === 1) {
      const last = runEnd(bytes, at, end, IN_NUMBER)
      if (last - at >= SHORTEST && isRounded(bytes.toString('latin1', at, last))) numberOffsets.push(at, last)
      at = last
    } else at++
  }
  return numberOffsets
}

function isRounded(text: string): boolean {
  const value = Number(text)
  return isInteger(text) ? !Number.isSafeInteger(value) : Number.isInteger(value) && !isWhole(text)
}

/** Whether it is written without fraction and exponent. */
function isInteger(text: string): boolean {
  return /^-?\d+$/.test(text)
}

/** The text with these numbers as strings. */
function marked(bytes: Buffer, start: number, end: number, numberOffsets: readonly number[]): string {
  const parts: string[] = []
  let at = start
  for (let i = 0; i < numberOffsets.length; i += 2) {
    const [from, to] = [numberOffsets[i]!, numberOffsets[i + 1]!]
    const isRestored = i < 2 * MAX_NUMBERS
    const number = isRestored ? `"${MARK}${bytes.toString('latin1', from, to)}"` : INFINITE
    parts.push(bytes.toString('utf8', at, from), number)
    at = to
  }
  parts.push(bytes.toString('utf8', at, end))
  return parts.join('')
}

/** Puts the numbers back. Without recursion: nesting has no limit. */
function restored(root: unknown): unknown {
  const holder: Record<string, unknown> = { root }
  const waiting: Record<string, unknown>[] = [holder]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    for (const key of Object.keys(node)) {
      const value = node[key]
      if (typeof value === 'string' && value.startsWith(MARK))
        node[key] = exactNumber(value.slice(MARK.length))
      else if (typeof value === 'object' && value !== null) waiting.push(value as Record<string, unknown>)
    }
  }
  return holder.root
}

function exactNumber(text: string): number | bigint {
  return isInteger(text) && text.length <= MAX_DIGITS ? int64(BigInt(text)) : Number.NaN
}

/** Whether a number with a fraction or an exponent is a whole one. */
function isWhole(text: string): boolean {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [, fraction = ''] = mantissa.split('.')
  const digits = mantissa.replace(/[-.]/g, '')
  // A regular expression would look at every run of zeros again from each of them.
  let significant = digits.length
  while (significant > 0 && digits[significant - 1] === '0') significant--
  return significant === 0 || fraction.length - Number(exponent) <= digits.length - significant
}
