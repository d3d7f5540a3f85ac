import { skipString } from './valid-json.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * The valid JSON at [start, end) without white space between its parts. Numbers keep every digit, and members their order;
 * strings are escaped as JSON.stringify does it, however the service had written them, without lone surrogates.
 */
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
