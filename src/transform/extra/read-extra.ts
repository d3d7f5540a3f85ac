import { type ExtraField, int64, parseTimestamp } from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'
import { BACKSLASH, QUOTE, skipString } from '../scan/json-steps.ts'
import { integer } from '../schema.ts'

/** The message of a value of another type: what is expected, never what was found. */
export const EXPECTED: Record<ExtraField['type'], string> = {
  string: 'Invalid input: expected string',
  int64: 'Invalid input: expected a 64-bit integer',
  boolean: 'Invalid input: expected boolean',
  timestamp: 'Invalid input: expected an ISO 8601 timestamp',
  json: 'Invalid input: expected JSON',
  strings: 'Invalid input: expected an array of strings',
}

/** @param found not null, parsed with all digits @returns undefined when it is of another type */
export function readExtra(
  type: Exclude<ExtraField['type'], 'json'>,
  found: unknown,
): ColumnValue | undefined {
  switch (type) {
    case 'string':
      return typeof found === 'string' ? found : undefined
    case 'int64': {
      const result = integer.safeParse(found)
      if (!result.success) return undefined
      // JSON knows a negative zero; a column of integers does not.
      return result.data === 0 ? 0 : int64(result.data)
    }
    case 'boolean':
      return typeof found === 'boolean' ? found : undefined
    case 'timestamp':
      return typeof found === 'string' ? (parseTimestamp(found) ?? undefined) : undefined
    case 'strings':
      return Array.isArray(found) && found.every((item) => typeof item === 'string') ? found : undefined
  }
}

/** Without white space. Numbers keep every digit, members their order. Strings are as JSON.stringify writes them. */
export function compactJson(bytes: Buffer, start: number, end: number): string {
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
