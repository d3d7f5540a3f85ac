import { areSame } from './bytes'
import { BACKSLASH, COLON, isDigit, isHex, QUOTE } from './json'
import {
  ANY,
  AUTH_DOMAINS,
  CREDENTIAL_HASH,
  DOMAIN,
  ESCAPED_TEXT,
  EVENT_UID,
  HASH,
  HASH_TYPE,
  IDENTITY_NAME,
  KNOWN_PASSWORD_ID,
  LIST,
  NULL,
  TEXT,
  URLS,
} from './kinds'
import {
  ENDS,
  FIELD_SLOTS,
  KINDS,
  PATTERNS,
  RUN_BYTES,
  RUN_TEXTS,
  STARTS,
  TEXTS,
  UNKNOWN_FIELDS,
} from './layout'

/*
 * Says of which records a text may hold the record's own secret, in a spelling that core/secrets/encodings.ts knows. It
 * looks for four of its bytes only, so it says yes too often, but never no too often.
 */

/** Fields to be searched, a bit each; 0: nothing is. */
let searched: u32 = 0

export function search(fields: u32): void {
  searched = fields
}

/** A reading of a text, and a reading of that one. The memory is free while there are no texts of a run. */
const READING: usize = RUN_TEXTS
const SECOND_READING: usize = RUN_TEXTS + RUN_BYTES / 2
const MAX_READING: usize = RUN_BYTES / 2 - 64

/** Four bytes of the secret, each of which may be one of two. */
const ANCHOR: usize = 4
const PLAIN: usize = PATTERNS
const HEX: usize = PATTERNS + 8
const BASE64: usize = PATTERNS + 16
const ALIGNMENTS: usize = 3

/** As in own-secret/own-secret.ts. */
const MIN_LENGTH: usize = 2

const PERCENT: u8 = 0x25
const PLUS: u8 = 0x2b
/** The shortest code that is decoded. */
const MIN_RUN: usize = 6

/** The secret, as it is written. */
let secretStart: usize = 0
let secretEnd: usize = 0
let isEscaped: bool = false
/** Whether it has been looked at: most records have no text to be searched. */
let isTaken: bool = false
let hasAnchor: bool = false
/** Of the secret. */
let length: usize = 0
/** The least characters of base64 that hold the secret. */
let minRun: usize = 0
let hasCodes: bool = false
let sawBackslash: bool = false
let sawPercent: bool = false

/** Whether a text of the record, or the name of one of its unknown fields, may hold its secret. */
export function mayRepeatSecret(record: usize, firstUnknown: usize, endUnknown: usize): bool {
  if (searched === 0) return false
  const row = FIELD_SLOTS * record
  const kind = load<u8>(KINDS + row + HASH)
  if ((kind & (TEXT | ESCAPED_TEXT)) === 0) return false
  secretStart = startOf(row + HASH)
  secretEnd = endOf(row + HASH)
  isEscaped = kind === ESCAPED_TEXT
  isTaken = false
  // It is no text of fewer characters.
  if (secretEnd - secretStart < MIN_LENGTH) return false
  const isLine = hasSeparator(row)
  // A domain stays that the identity tells anyway.
  if ((isLine || secretEnd - secretStart < ANCHOR || isEscaped || !hasDomain(row)) && isIn(row, DOMAIN))
    return true
  if (isIn(row, HASH_TYPE) || isIn(row, KNOWN_PASSWORD_ID)) return true
  if (isIn(row, CREDENTIAL_HASH) || isIn(row, EVENT_UID)) return true
  if (isInList(row, AUTH_DOMAINS) || isInList(row, URLS)) return true
  if (isLine && isIn(row, IDENTITY_NAME)) return true
  for (let i = firstUnknown; i < endUnknown; i++) {
    const name = UNKNOWN_FIELDS + 16 * i
    if (mayHold(load<u32>(name), load<u32>(name, 4))) return true
  }
  return false
}

function startOf(slot: usize): usize {
  return load<u32>(STARTS + 4 * slot)
}

function endOf(slot: usize): usize {
  return load<u32>(ENDS + 4 * slot)
}

function isIn(row: usize, field: usize): bool {
  if ((searched & (1 << (<u32>field))) === 0) return false
  const kind = load<u8>(KINDS + row + field)
  if (kind <= NULL) return false
  const start = startOf(row + field)
  const end = endOf(row + field)
  return kind === ANY && load<u8>(start) === QUOTE ? mayHold(start + 1, end - 1) : mayHold(start, end)
}

function isInList(row: usize, field: usize): bool {
  if ((searched & (1 << (<u32>field))) === 0 || load<u8>(KINDS + row + field) !== LIST) return false
  const end = endOf(row + field)
  for (let i = startOf(row + field); i < end; i++) {
    if (mayHold(load<u32>(TEXTS + 12 * i), load<u32>(TEXTS + 12 * i, 4))) return true
  }
  return false
}

/** An identity is masked only where it is a line with the secret in it. */
function hasSeparator(row: usize): bool {
  const end = endOf(row + IDENTITY_NAME)
  for (let at = startOf(row + IDENTITY_NAME); at < end; at += 16) {
    const text = v128.load(at)
    const first = v128.or(i8x16.eq(text, i8x16.splat(COLON)), i8x16.eq(text, i8x16.splat(0x3b)))
    const second = v128.or(i8x16.eq(text, i8x16.splat(0x7c)), i8x16.eq(text, i8x16.splat(BACKSLASH)))
    if ((i8x16.bitmask(v128.or(first, second)) & inside(end - at)) !== 0) return true
  }
  return false
}

/** Whether the identity ends with the domain. */
function hasDomain(row: usize): bool {
  const start = startOf(row + DOMAIN)
  const domain = endOf(row + DOMAIN) - start
  const end = endOf(row + IDENTITY_NAME)
  return domain <= end - startOf(row + IDENTITY_NAME) && areSame(start, end - domain, domain)
}

/** The bits of those of sixteen bytes that lie before the end. */
function inside(left: usize): i32 {
  return left >= 16 ? 0xffff : (1 << (<i32>left)) - 1
}

/** Looks for an anchor in the secret: bytes that have one spelling each, but for their case. */
function take(): void {
  isTaken = true
  hasAnchor = false
  let from = secretStart
  length = secretEnd - secretStart
  if (isEscaped) {
    if (length > MAX_READING) return
    from = READING
    length = unescapeJson(secretStart, secretEnd, READING) - READING
  }
  hasCodes = false
  minRun = max((8 * length + 5) / 6, MIN_RUN)
  const wanted = min(length, ANCHOR)
  let found: usize = 0
  for (let i: usize = 0; i < length && found < wanted; i++) {
    const byte = load<u8>(from + i)
    if (isPlain(byte)) option(PLAIN, found++, byte, otherCase(byte))
    else found = 0
  }
  hasAnchor = found === wanted
}

/** A blank has several spellings, and what is no ASCII has cases of other lengths. */
function isPlain(byte: u8): bool {
  return byte > 0x20 && byte < 0x7f && byte !== PLUS
}

function option(pattern: usize, index: usize, one: u8, other: u8): void {
  store<u8>(pattern + index, one)
  store<u8>(pattern + index, other, ANCHOR)
}

function otherCase(byte: u8): u8 {
  return <u8>((byte | 0x20) - 0x61) < 26 ? byte ^ 0x20 : byte
}

/** Whether the text in the JSON at [start, end) may hold the secret. */
function mayHold(start: usize, end: usize): bool {
  if (!isTaken) take()
  if (length < MIN_LENGTH || end - start < length) return false
  if (!hasAnchor || end - start > MAX_READING) return true
  sawBackslash = false
  sawPercent = false
  if (isRead(start, end)) return true
  if (!sawBackslash && !sawPercent) return false
  let text = start
  let textEnd = end
  if (sawBackslash) {
    text = READING
    textEnd = unescapeJson(start, end, READING)
    sawBackslash = false
    if (isRead(text, textEnd)) return true
    if (sawBackslash && isRead(SECOND_READING, unescapeJson(text, textEnd, SECOND_READING))) return true
  }
  return sawPercent && isRead(SECOND_READING, unescapePercent(text, textEnd, SECOND_READING))
}

/** Whether a reading may hold it, plain or in codes. Notes escapes. */
function isRead(start: usize, end: usize): bool {
  for (let at = start; at < end; at += 16) {
    const text = v128.load(at)
    const percents = i8x16.eq(text, i8x16.splat(PERCENT))
    const backslashes = i8x16.eq(text, i8x16.splat(BACKSLASH))
    const odd = i8x16.bitmask(v128.or(percents, backslashes)) & inside(end - at)
    if (odd === 0) continue
    if ((i8x16.bitmask(percents) & odd) !== 0) sawPercent = true
    if ((i8x16.bitmask(backslashes) & odd) !== 0) sawBackslash = true
  }
  if (length < ANCHOR) return end - start === length && isAt(start)
  if (find(start, end, PLAIN)) return true
  if (end - start < minRun || !hasRun(start, end)) return false
  if (!hasCodes) setCodes()
  for (let i: usize = 0; i < ALIGNMENTS; i++) if (find(start, end, BASE64 + 8 * i)) return true
  return find(start, end, HEX)
}

/** Of a secret shorter than the anchor. */
function isAt(at: usize): bool {
  for (let i: usize = 0; i < length; i++) {
    const byte = load<u8>(at + i)
    if (byte !== load<u8>(PLAIN + i) && byte !== load<u8>(PLAIN + i, ANCHOR)) return false
  }
  return true
}

function find(start: usize, end: usize, pattern: usize): bool {
  const a = v128.load8_splat(pattern)
  const b = v128.load8_splat(pattern, 1)
  const c = v128.load8_splat(pattern, 2)
  const d = v128.load8_splat(pattern, 3)
  const a2 = v128.load8_splat(pattern, 4)
  const b2 = v128.load8_splat(pattern, 5)
  const c2 = v128.load8_splat(pattern, 6)
  const d2 = v128.load8_splat(pattern, 7)
  for (let at = start; at + ANCHOR <= end; at += 16) {
    const first = v128.load(at)
    const second = v128.load(at, 1)
    const third = v128.load(at, 2)
    const fourth = v128.load(at, 3)
    const found = v128.and(
      v128.and(
        v128.or(i8x16.eq(first, a), i8x16.eq(first, a2)),
        v128.or(i8x16.eq(second, b), i8x16.eq(second, b2)),
      ),
      v128.and(
        v128.or(i8x16.eq(third, c), i8x16.eq(third, c2)),
        v128.or(i8x16.eq(fourth, d), i8x16.eq(fourth, d2)),
      ),
    )
    if ((i8x16.bitmask(found) & inside(end - at - ANCHOR + 1)) !== 0) return true
  }
  return false
}

/** Whether so many characters of base64 come together that they may hold the secret. */
function hasRun(start: usize, end: usize): bool {
  const wanted = <i32>min(minRun, 16)
  let run: i32 = 0
  for (let at = start; at < end; at += 16) {
    const codes = codesAt(at) & inside(end - at)
    if (codes === 0xffff) {
      run += 16
      if (run >= wanted) return true
      continue
    }
    // As many at the beginning; as many in a row anywhere; as many at the end.
    if (run + ctz(~codes) >= wanted) return true
    let rows = codes
    for (let left = wanted, step = 0; left > 1 && rows !== 0; left -= step) {
      step = left >> 1
      rows &= rows >> step
    }
    if (rows !== 0) return true
    run = clz(~(codes << 16))
  }
  return false
}

/** Which of sixteen bytes belong to an alphabet of base64, a bit each. */
function codesAt(at: usize): i32 {
  const text = v128.load(at)
  const small = v128.or(text, i8x16.splat(0x20))
  const letters = i8x16.lt_u(i8x16.sub(small, i8x16.splat(0x61)), i8x16.splat(26))
  // The characters from `-` to `9` but for the dot.
  const digits = i8x16.lt_u(i8x16.sub(text, i8x16.splat(0x2d)), i8x16.splat(13))
  const others = v128.or(i8x16.eq(text, i8x16.splat(PLUS)), i8x16.eq(text, i8x16.splat(0x5f)))
  const found = v128.andnot(v128.or(letters, v128.or(digits, others)), i8x16.eq(text, i8x16.splat(0x2e)))
  return i8x16.bitmask(found)
}

/** Makes the patterns of hex and base64. Upper and lower case differ in one bit, and no character has bits of two letters' cases. */
function setCodes(): void {
  hasCodes = true
  const one = bswap(load<u32>(PLAIN))
  const other = bswap(load<u32>(PLAIN, ANCHOR))
  for (let i: usize = 0; i < ANCHOR; i++) {
    const shift = 28 - 4 * <u32>i
    const digit = hexDigit((one >> shift) & 15)
    const isHigh = (i & 1) === 0
    option(HEX, i, digit, isHigh ? hexDigit((other >> shift) & 15) : otherCase(digit))
    // Where the first byte of the anchor is the first, second or third of three.
    sextet(BASE64, i, one, other, 26 - 6 * <u32>i)
    sextet(BASE64 + 8, i, one, other, 22 - 6 * <u32>i)
    sextet(BASE64 + 16, i, one, other, 24 - 6 * <u32>i)
  }
}

function hexDigit(value: u32): u8 {
  return <u8>(value < 10 ? 0x30 + value : 0x57 + value)
}

function sextet(pattern: usize, index: usize, one: u32, other: u32, shift: u32): void {
  const value = (one >> shift) & 63
  const character = base64(value)
  // Of the last two, which no letter has, there are two alphabets.
  if (value === 62) option(pattern, index, character, 0x2d)
  else if (value === 63) option(pattern, index, character, 0x5f)
  else option(pattern, index, character, base64((other >> shift) & 63))
}

function base64(value: u32): u8 {
  if (value < 26) return <u8>(0x41 + value)
  if (value < 52) return <u8>(0x47 + value)
  if (value < 62) return <u8>(value - 4)
  return value === 62 ? PLUS : 0x2f
}

/** Writes a text without its JSON escapes; what is no ASCII becomes some byte that is none. @returns the end */
function unescapeJson(start: usize, end: usize, to: usize): usize {
  let out = to
  let at = start
  while (at < end) {
    let byte = load<u8>(at++)
    if (byte === BACKSLASH && at < end) {
      const letter = load<u8>(at)
      const small = letter | 0x20
      if (small === 0x75 && at + 4 < end && areHex(at + 1, 4)) {
        const code = (hexAt(at + 1) << 8) | hexAt(at + 3)
        byte = code < 0x80 ? <u8>code : 0xff
        at += 5
      } else if (letter === QUOTE || letter === BACKSLASH || letter === 0x2f) {
        byte = letter
        at++
      } else if (small === 0x62 || small === 0x66 || small === 0x6e || small === 0x72 || small === 0x74) {
        byte = control(small)
        at++
      }
    }
    store<u8>(out++, byte)
  }
  return out
}

function control(letter: u8): u8 {
  switch (letter) {
    case 0x62:
      return 0x08
    case 0x66:
      return 0x0c
    case 0x6e:
      return 0x0a
    case 0x72:
      return 0x0d
    default:
      return 0x09
  }
}

function unescapePercent(start: usize, end: usize, to: usize): usize {
  let out = to
  let at = start
  while (at < end) {
    let byte = load<u8>(at++)
    if (byte === PERCENT && at + 1 < end && areHex(at, 2)) {
      byte = <u8>hexAt(at)
      at += 2
    }
    store<u8>(out++, byte)
  }
  return out
}

function areHex(at: usize, count: usize): bool {
  for (let i: usize = 0; i < count; i++) if (!isHex(load<u8>(at + i))) return false
  return true
}

/** The byte that two digits write. */
function hexAt(at: usize): u32 {
  return (hexValue(load<u8>(at)) << 4) | hexValue(load<u8>(at, 1))
}

function hexValue(digit: u8): u32 {
  return isDigit(digit) ? digit & 15 : ((digit & 7) as u32) + 9
}
