/** The JSON must be valid, without quotes; the text is never longer. Lone surrogates become U+FFFD. @returns its end */
export function unescapeJson(
  from: Uint8Array,
  start: number,
  end: number,
  to: Uint8Array,
  at: number,
): number {
  let out = at
  for (let i = start; i < end; i++) {
    const byte = from[i]!
    if (byte !== BACKSLASH) {
      to[out++] = byte
      continue
    }
    const letter = from[++i]!
    if (letter !== LOWER_U) {
      to[out++] = SIMPLE[letter]!
      continue
    }
    let codePoint = hex4(from, i + 1)
    i += 4
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) {
      const low = isEscapeU(from, i + 1, end) ? hex4(from, i + 3) : 0
      if (codePoint <= 0xdbff && low >= 0xdc00 && low <= 0xdfff) {
        codePoint = 0x10000 + ((codePoint - 0xd800) << 10) + (low - 0xdc00)
        i += 6
      } else {
        codePoint = 0xfffd
      }
    }
    out = writeCodePoint(to, out, codePoint)
  }
  return out
}

const BACKSLASH = 0x5c
const LOWER_U = 0x75

/** The byte of a two-character escape, by its second character. */
const SIMPLE = new Uint8Array(128)
for (const [letter, text] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  SIMPLE[letter!.charCodeAt(0)] = text!.charCodeAt(0)
}

/** Value of each hexadecimal digit, by its character; 255 for every other byte. */
const HEX_DIGITS = new Uint8Array(256).fill(255)
for (let digit = 0; digit < 16; digit++) {
  HEX_DIGITS[digit.toString(16).charCodeAt(0)] = digit
  HEX_DIGITS[digit.toString(16).toUpperCase().charCodeAt(0)] = digit
}

function isEscapeU(from: Uint8Array, at: number, end: number): boolean {
  return at + 6 <= end && from[at] === BACKSLASH && from[at + 1] === LOWER_U
}

function hex4(from: Uint8Array, at: number): number {
  return (
    (HEX_DIGITS[from[at]!]! << 12) |
    (HEX_DIGITS[from[at + 1]!]! << 8) |
    (HEX_DIGITS[from[at + 2]!]! << 4) |
    HEX_DIGITS[from[at + 3]!]!
  )
}

function writeCodePoint(to: Uint8Array, at: number, codePoint: number): number {
  let out = at
  if (codePoint < 0x80) {
    to[out++] = codePoint
  } else if (codePoint < 0x800) {
    to[out++] = 0xc0 | (codePoint >> 6)
    to[out++] = 0x80 | (codePoint & 0x3f)
  } else if (codePoint < 0x10000) {
    to[out++] = 0xe0 | (codePoint >> 12)
    to[out++] = 0x80 | ((codePoint >> 6) & 0x3f)
    to[out++] = 0x80 | (codePoint & 0x3f)
  } else {
    to[out++] = 0xf0 | (codePoint >> 18)
    to[out++] = 0x80 | ((codePoint >> 12) & 0x3f)
    to[out++] = 0x80 | ((codePoint >> 6) & 0x3f)
    to[out++] = 0x80 | (codePoint & 0x3f)
  }
  return out
}
