import { randomUUID } from 'node:crypto'
import { int64 } from '../../core/index.ts'
import { BACKSLASH, QUOTE } from './json-steps.ts'

/** Numbers of fewer digits are exact in a double, or are no integers. */
const LONG = 16
/** Nobody needs more digits of a number that no column can hold. */
const MAX_DIGITS = 10_240
/** Two for each item that a page can have. More would fill the memory, and stay as JSON.parse has them. */
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

/**
 * JSON.parse of the bytes [start, end), but for numbers that it would round: whole ones become bigints, and what only
 * looks whole once it is rounded becomes NaN, so that it does not pass for an integer. Takes longer than JSON.parse.
 * @throws SyntaxError as JSON.parse
 */
export function parseExactJson(bytes: Buffer, start = 0, end = bytes.length): unknown {
  const value: unknown = JSON.parse(bytes.toString('utf8', start, end))
  if (!mayHoldLongNumbers(bytes, start, end)) return value
  const numberOffsets = longNumbers(bytes, start, end)
  if (numberOffsets.length === 0 || numberOffsets.length > 2 * MAX_NUMBERS) return value
  return restored(JSON.parse(marked(bytes, start, end, numberOffsets)))
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

/** Start and end of every long number in valid JSON, one after the other. */
function longNumbers(bytes: Buffer, start: number, end: number): number[] {
  const numberOffsets: number[] = []
  let at = start
  while (at < end && numberOffsets.length <= 2 * MAX_NUMBERS) {
    if (bytes[at] === QUOTE) {
      at++
      while (bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
      at++
    } else if (IN_NUMBER[bytes[at]!] === 1) {
      const last = runEnd(bytes, at, end, IN_NUMBER)
      if (last - at >= LONG) numberOffsets.push(at, last)
      at = last
    } else at++
  }
  return numberOffsets
}

/** The text with every long number as a string. */
function marked(bytes: Buffer, start: number, end: number, numberOffsets: readonly number[]): string {
  const parts: string[] = []
  let at = start
  for (let i = 0; i < numberOffsets.length; i += 2) {
    const [from, to] = [numberOffsets[i]!, numberOffsets[i + 1]!]
    parts.push(bytes.toString('utf8', at, from), `"${MARK}${bytes.toString('latin1', from, to)}"`)
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
  if (/^-?\d+$/.test(text)) return text.length > MAX_DIGITS ? Number.NaN : int64(BigInt(text))
  const value = Number(text)
  return Number.isInteger(value) && !isWhole(text) ? Number.NaN : value
}

/** Whether a number with a fraction or an exponent is a whole one. */
function isWhole(text: string): boolean {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [, fraction = ''] = mantissa.split('.')
  const digits = mantissa.replace(/[-.]/g, '')
  const significant = digits.replace(/0+$/, '').length
  return significant === 0 || fraction.length - Number(exponent) <= digits.length - significant
}
