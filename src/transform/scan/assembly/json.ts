// Every function takes the position where something must begin, and returns the position after it, or 0 when it is not
// valid JSON (or too deep): it accepts no more than JSON.parse. Zeros follow the text, at which everything ends.

export const QUOTE: u8 = 0x22
export const COMMA: u8 = 0x2c
export const MINUS: u8 = 0x2d
export const DOT: u8 = 0x2e
export const ZERO: u8 = 0x30
export const COLON: u8 = 0x3a
export const OPEN_BRACKET: u8 = 0x5b
export const BACKSLASH: u8 = 0x5c
export const CLOSE_BRACKET: u8 = 0x5d
export const OPEN_BRACE: u8 = 0x7b
export const CLOSE_BRACE: u8 = 0x7d

/** Values nested deeper are left to JSON.parse, which needs no stack for them. */
const MAX_DEPTH: i32 = 64

/** Whether the string walked over last has escapes. */
export let hasEscapes: bool = false

export function space(start: usize): usize {
  let at = start
  while (load<u8>(at) <= 0x20 && isSpace(load<u8>(at))) at++
  return at
}

function isSpace(byte: u8): bool {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** False for the zeros behind the text as well. */
export function isDigit(byte: u8): bool {
  return <u8>(byte - ZERO) <= 9
}

/** @param start after the opening quote */
export function string(start: usize): usize {
  let at = start
  hasEscapes = false
  while (true) {
    // The first character that is a quote, a backslash or a control character.
    const bytes = v128.load(at)
    const special = i8x16.bitmask(
      v128.or(
        v128.or(i8x16.eq(bytes, i8x16.splat(QUOTE)), i8x16.eq(bytes, i8x16.splat(BACKSLASH))),
        i8x16.lt_u(bytes, i8x16.splat(0x20)),
      ),
    )
    if (special === 0) {
      at += 16
      continue
    }
    at += <usize>ctz(special)
    const byte = load<u8>(at)
    if (byte === QUOTE) return at + 1
    if (byte !== BACKSLASH) return 0
    hasEscapes = true
    at = escapeSequence(at + 1)
    if (at === 0) return 0
  }
}

/** @param at after the backslash */
function escapeSequence(at: usize): usize {
  switch (load<u8>(at)) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return at + 1
    case 0x75:
      return isHex(load<u8>(at, 1)) &&
        isHex(load<u8>(at, 2)) &&
        isHex(load<u8>(at, 3)) &&
        isHex(load<u8>(at, 4))
        ? at + 5
        : 0
    default:
      return 0
  }
}

export function isHex(byte: u8): bool {
  // In lower case `A` to `F` are `a` to `f`.
  return isDigit(byte) || <u8>((byte | 0x20) - 0x61) < 6
}

export function value(at: usize, depth: i32): usize {
  switch (load<u8>(at)) {
    case QUOTE:
      return string(at + 1)
    case OPEN_BRACE:
      return depth < MAX_DEPTH ? object(at + 1, depth + 1) : 0
    case OPEN_BRACKET:
      return depth < MAX_DEPTH ? array(at + 1, depth + 1) : 0
    case 0x6e:
      return nothing(at)
    case 0x74:
      return load<u32>(at) === 0x65757274 ? at + 4 : 0
    case 0x66:
      return load<u32>(at, 1) === 0x65736c61 ? at + 5 : 0
    default:
      return number(at)
  }
}

export function nothing(at: usize): usize {
  return load<u32>(at) === 0x6c6c756e ? at + 4 : 0
}

function object(start: usize, depth: i32): usize {
  let at = space(start)
  if (load<u8>(at) === CLOSE_BRACE) return at + 1
  while (true) {
    if (load<u8>(at) !== QUOTE) return 0
    at = string(at + 1)
    if (at === 0) return 0
    at = space(at)
    if (load<u8>(at) !== COLON) return 0
    at = value(space(at + 1), depth)
    if (at === 0) return 0
    at = space(at)
    if (load<u8>(at) === CLOSE_BRACE) return at + 1
    if (load<u8>(at) !== COMMA) return 0
    at = space(at + 1)
  }
}

function array(start: usize, depth: i32): usize {
  let at = space(start)
  if (load<u8>(at) === CLOSE_BRACKET) return at + 1
  while (true) {
    at = value(at, depth)
    if (at === 0) return 0
    at = space(at)
    if (load<u8>(at) === CLOSE_BRACKET) return at + 1
    if (load<u8>(at) !== COMMA) return 0
    at = space(at + 1)
  }
}

function number(start: usize): usize {
  let at = load<u8>(start) === MINUS ? start + 1 : start
  at = load<u8>(at) === ZERO ? at + 1 : digits(at)
  if (at === 0) return 0
  if (load<u8>(at) === DOT) {
    at = digits(at + 1)
    if (at === 0) return 0
  }
  if ((load<u8>(at) | 0x20) !== 0x65) return at
  const sign = load<u8>(at, 1)
  return digits(sign === 0x2b || sign === MINUS ? at + 2 : at + 1)
}

/** One digit or more. */
function digits(start: usize): usize {
  let at = start
  while (isDigit(load<u8>(at))) at++
  return at === start ? 0 : at
}
