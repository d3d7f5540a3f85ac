import { HEX_DIGITS } from '../columns/unescape-json.ts'

export const QUOTE = 0x22
export const COMMA = 0x2c
export const MINUS = 0x2d
const DOT = 0x2e
export const ZERO = 0x30
const NINE = 0x39
export const COLON = 0x3a
export const OPEN_BRACKET = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d

/** Values nested deeper are left to JSON.parse, which needs no stack for them. */
const MAX_DEPTH = 64

/**
 * Walks over what is around the items of a response, and over items that no window holds, without building
 * anything from it. Every method takes the position where something must begin and returns the position after it, or
 * -1 when the bytes there are not valid JSON (or too deep): it accepts no more than JSON.parse does.
 */
export class JsonScanner {
  /** Whether the string walked over last has escapes. */
  hasEscapes = false

  private bytes: Uint8Array = new Uint8Array(0)

  begin(bytes: Uint8Array): void {
    this.bytes = bytes
  }

  /** The first position that is no white space. Never fails. */
  space(start: number): number {
    const { bytes } = this
    let at = start
    while (bytes[at]! <= 0x20 && isSpace(bytes[at]!)) at++
    return at
  }

  /** @param at after the opening quote */
  string(at: number): number {
    const { bytes } = this
    const { length } = bytes
    this.hasEscapes = false
    for (let i = at; i < length; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE) return i + 1
      if (byte < 0x20) return -1
      if (byte === BACKSLASH) {
        i = this.escapeEnd(i + 1)
        if (i < 0) return -1
        this.hasEscapes = true
      }
    }
    return -1
  }

  /** Any value, whatever it holds. */
  value(at: number, depth = 0): number {
    const byte = this.bytes[at]!
    switch (byte) {
      case QUOTE:
        return this.string(at + 1)
      case OPEN_BRACE:
        return depth < MAX_DEPTH ? this.object(at + 1, depth + 1) : -1
      case OPEN_BRACKET:
        return depth < MAX_DEPTH ? this.array(at + 1, depth + 1) : -1
      case 0x6e:
        return this.literal(NULL, at)
      case 0x74:
        return this.literal(TRUE, at)
      case 0x66:
        return this.literal(FALSE, at)
      default:
        return this.number(at)
    }
  }

  private object(start: number, depth: number): number {
    let at = this.space(start)
    if (this.bytes[at] === CLOSE_BRACE) return at + 1
    for (;;) {
      if (this.bytes[at] !== QUOTE) return -1
      at = this.string(at + 1)
      if (at < 0) return -1
      at = this.space(at)
      if (this.bytes[at] !== COLON) return -1
      at = this.value(this.space(at + 1), depth)
      if (at < 0) return -1
      at = this.space(at)
      if (this.bytes[at] === CLOSE_BRACE) return at + 1
      if (this.bytes[at] !== COMMA) return -1
      at = this.space(at + 1)
    }
  }

  private array(start: number, depth: number): number {
    let at = this.space(start)
    if (this.bytes[at] === CLOSE_BRACKET) return at + 1
    for (;;) {
      at = this.value(at, depth)
      if (at < 0) return -1
      at = this.space(at)
      if (this.bytes[at] === CLOSE_BRACKET) return at + 1
      if (this.bytes[at] !== COMMA) return -1
      at = this.space(at + 1)
    }
  }

  private literal(word: Uint8Array, at: number): number {
    for (let i = 0; i < word.length; i++) if (this.bytes[at + i] !== word[i]) return -1
    return at + word.length
  }

  private number(start: number): number {
    const { bytes } = this
    let at = bytes[start] === MINUS ? start + 1 : start
    at = bytes[at] === ZERO ? at + 1 : this.digits(at)
    if (at < 0) return -1
    if (bytes[at] === DOT) {
      at = this.digits(at + 1)
      if (at < 0) return -1
    }
    if (bytes[at] !== 0x65 && bytes[at] !== 0x45) return at
    const sign = bytes[at + 1]
    return this.digits(sign === 0x2b || sign === MINUS ? at + 2 : at + 1)
  }

  /** One digit or more. */
  private digits(start: number): number {
    let at = start
    while (isDigit(this.bytes[at]!)) at++
    return at === start ? -1 : at
  }

  /** @returns the last position of the escape that goes on at `at` */
  private escapeEnd(at: number): number {
    const { bytes } = this
    switch (bytes[at]) {
      case QUOTE:
      case BACKSLASH:
      case 0x2f:
      case 0x62:
      case 0x66:
      case 0x6e:
      case 0x72:
      case 0x74:
        return at
      case 0x75:
        break
      default:
        return -1
    }
    if (at + 4 >= bytes.length) return -1
    for (let i = at + 1; i <= at + 4; i++) if (HEX_DIGITS[bytes[i]!] === 255) return -1
    return at + 4
  }
}

export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** False beyond the end of the bytes as well. */
export function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE
}

const NULL = Buffer.from('null')
const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
