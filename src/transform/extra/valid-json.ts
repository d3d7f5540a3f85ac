import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  isSpace,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../scan/json-scanner.ts'

/*
 * Steps over JSON that is known to be valid, however deep it is nested.
 */

/** The first position that is no white space. */
function skipSpace(bytes: Uint8Array, start: number): number {
  let at = start
  while (isSpace(bytes[at]!)) at++
  return at
}

/** @returns the position after the string whose opening quote is at `start` */
export function skipString(bytes: Uint8Array, start: number): number {
  let at = start + 1
  while (bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at + 1
}

/** @returns the position after the value that begins at `start` */
function skipValue(bytes: Uint8Array, start: number): number {
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
  } while (depth > 0)
  return at
}

/**
 * Goes through the members of the object at `start`.
 * @param onMember gets start and end of the key, quotes included, and of the value
 */
export function eachMember(
  bytes: Uint8Array,
  start: number,
  onMember: (key: number, keyEnd: number, value: number, valueEnd: number) => void,
): void {
  let at = skipSpace(bytes, start + 1)
  while (bytes[at] !== CLOSE_BRACE) {
    const keyEnd = skipString(bytes, at)
    const value = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1)
    const end = skipValue(bytes, value)
    onMember(at, keyEnd, value, end)
    at = afterComma(bytes, end)
  }
}

/** Whether a key, with its quotes, is this name: `written` is the name as most write it. */
export function isKey(bytes: Buffer, key: number, keyEnd: number, name: string, written: Buffer): boolean {
  const length = keyEnd - key - 2
  let same = 0
  for (; same < length; same++) {
    const byte = bytes[key + 1 + same]
    if (byte === BACKSLASH) return JSON.parse(bytes.toString('utf8', key, keyEnd)) === name
    if (byte !== written[same]) break
  }
  if (same === length) return length === written.length
  return (
    bytes.subarray(key, keyEnd).includes(BACKSLASH) &&
    JSON.parse(bytes.toString('utf8', key, keyEnd)) === name
  )
}

const ITEMS = 'items'
const WRITTEN = Buffer.from(ITEMS)

/**
 * Where the items of a response begin, in their order: for values that JSON.parse does not keep as they are.
 * @param body a valid response without its byte order mark
 */
export function itemStarts(body: Buffer): readonly number[] {
  let items = -1
  eachMember(body, skipSpace(body, 0), (key, keyEnd, value) => {
    if (isKey(body, key, keyEnd, ITEMS, WRITTEN)) items = value
  })
  return items < 0 ? [] : elementStarts(body, items)
}

/** Where each element of the array at `start` begins. */
function elementStarts(bytes: Uint8Array, start: number): readonly number[] {
  const starts: number[] = []
  let at = skipSpace(bytes, start + 1)
  while (bytes[at] !== CLOSE_BRACKET) {
    starts.push(at)
    at = afterComma(bytes, skipValue(bytes, at))
  }
  return starts
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
