// Steps over JSON of any depth without checking it. Invalid JSON ends somewhere, at most two bytes behind the end.

export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_BRACKET = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d

export function skipSpace(bytes: Uint8Array, start: number): number {
  let at = start
  while (isSpace(bytes[at]!)) at++
  return at
}

/** @returns the position after the string whose opening quote is at `start` */
export function skipString(bytes: Uint8Array, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at + 1
}

/** @returns the position after the value that begins at `start` */
export function skipValue(bytes: Uint8Array, start: number): number {
  let at = start
  let depth = 0
  do {
    switch (bytes[at]) {
      case QUOTE:
        at = skipString(bytes, at)
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++
        at++
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--
        at++
        break
      default:
        at = depth === 0 ? skipPlain(bytes, at) : at + 1
    }
  } while (depth > 0 && at < bytes.length)
  return at
}

/** Of valid JSON; null: it has no such member. Of several of one name it is the last, as in JSON.parse. */
export function memberAt(
  bytes: Buffer,
  start: number,
  name: string,
): readonly [start: number, end: number] | null {
  let found: readonly [number, number] | null = null
  let at = skipSpace(bytes, start + 1)
  while (at < bytes.length && bytes[at] !== CLOSE_BRACE) {
    const keyEnd = skipString(bytes, at)
    const value = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1)
    const end = skipValue(bytes, value)
    if (JSON.parse(bytes.toString('utf8', at, keyEnd)) === name) found = [value, end]
    at = afterComma(bytes, end)
  }
  return found
}

function afterComma(bytes: Uint8Array, start: number): number {
  const at = skipSpace(bytes, start)
  return bytes[at] === COMMA ? skipSpace(bytes, at + 1) : at
}

/** A number or a literal. */
function skipPlain(bytes: Uint8Array, start: number): number {
  let at = start
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isSpace(byte)) break
  }
  return at
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
