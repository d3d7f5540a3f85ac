import { type ExtraField, int64, parseTimestamp } from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'
import { parseExactJson } from '../scan/exact-json.ts'
import { BACKSLASH, MINUS, OPEN_BRACKET, QUOTE, skipString, ZERO } from '../scan/json-steps.ts'
import { integer } from '../schema.ts'

/** So many digits are exact in a double. */
const SAFE_DIGITS = 15

/** The message of a value of another type: what is expected, never what was found. */
export const EXPECTED: Record<ExtraField['type'], string> = {
  string: 'Invalid input: expected string',
  int64: 'Invalid input: expected a 64-bit integer',
  boolean: 'Invalid input: expected boolean',
  timestamp: 'Invalid input: expected an ISO 8601 timestamp',
  json: 'Invalid input: expected JSON',
  strings: 'Invalid input: expected an array of strings',
}

/**
 * The value of a field from its valid JSON at [start, end), which is not null.
 * @returns undefined when it is of another type
 */
export function readExtra(
  type: ExtraField['type'],
  bytes: Buffer,
  start: number,
  end: number,
): ColumnValue | undefined {
  switch (type) {
    case 'string':
      return readString(bytes, start, end)
    case 'int64':
      return readInteger(bytes, start, end)
    case 'boolean':
      if (end - start === 4 && bytes[start] === 0x74) return true
      return end - start === 5 && bytes[start] === 0x66 ? false : undefined
    case 'timestamp': {
      const time = readString(bytes, start, end)
      return time === undefined ? undefined : (parseTimestamp(time) ?? undefined)
    }
    case 'json':
      return compactJson(bytes, start, end)
    case 'strings': {
      if (bytes[start] !== OPEN_BRACKET) return undefined
      const list: unknown[] = JSON.parse(bytes.toString('utf8', start, end))
      return list.every((item) => typeof item === 'string') ? list : undefined
    }
  }
}

function readString(bytes: Buffer, start: number, end: number): string | undefined {
  if (bytes[start] !== QUOTE) return undefined
  const hasEscapes = bytes.subarray(start, end).includes(BACKSLASH)
  return hasEscapes
    ? (JSON.parse(bytes.toString('utf8', start, end)) as string)
    : bytes.toString('utf8', start + 1, end - 1)
}

function readInteger(bytes: Buffer, start: number, end: number): ColumnValue | undefined {
  const first = bytes[start] === MINUS ? start + 1 : start
  let value = 0
  let at = first
  for (; at < end && at - first < SAFE_DIGITS; at++) {
    const digit = bytes[at]! - ZERO
    if (digit < 0 || digit > 9) break
    value = 10 * value + digit
  }
  if (at === first) return undefined
  // JSON knows a negative zero; a column of integers does not.
  if (at === end) return value === 0 || first === start ? value : -value
  const result = integer.safeParse(parseExactJson(bytes, start, end))
  if (!result.success) return undefined
  return result.data === 0 ? 0 : int64(result.data)
}

/**
 * The valid JSON at [start, end) without white space between its parts. Numbers keep every digit, and members their
 * order; strings are escaped as JSON.stringify does it, however the service had written them, without lone surrogates.
 */
function compactJson(bytes: Buffer, start: number, end: number): string {
  const parts: string[] = []
  let from = start
  const take = (to: number): void => {
    if (to > from) parts.push(bytes.toString('utf8', from, to))
  }
  for (let at = start; at < end; ) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      const next = skipString(bytes, at)
      if (bytes.subarray(at, next).includes(BACKSLASH)) {
        take(at)
        const text: string = JSON.parse(bytes.toString('utf8', at, next))
        parts.push(JSON.stringify(text.toWellFormed()))
        from = next
      }
      at = next
    } else if (byte <= 0x20) {
      take(at)
      from = ++at
    } else at++
  }
  take(end)
  return parts.join('')
}
