import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  hasEscapes,
  isDigit,
  MINUS,
  nothing,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  space,
  string,
  value,
  ZERO,
} from './json'
import {
  ALLOWED,
  ANY,
  ENDS,
  ESCAPED_TEXT,
  FIELD_COUNT,
  FIELD_SLOTS,
  FOLLOWING,
  ID,
  IDENTITY_NAME,
  IDS,
  IMPORTED_AT,
  INTEGER,
  IS_LINE,
  IS_SOURCE_ID,
  ITEMS,
  KEY_BYTES,
  KEY_LENGTHS,
  KEYS,
  KINDS,
  LIST,
  MARGIN,
  MAX_RECORDS,
  MAX_TEXTS,
  MAX_UNKNOWN,
  MAX_UNKNOWN_OF_ITEM,
  NULL,
  REQUIRED,
  RESPONSE,
  SOURCE,
  SOURCE_ID,
  SOURCE_KIND,
  SOURCES,
  STARTS,
  TEXT,
  TEXTS,
  TIMES,
  UNKNOWN,
  UNKNOWN_FIELDS,
} from './layout'
import { find, isIdOf, lengthOf } from './sources'
import { NO_TIME, timestamp } from './timestamp'

export { gatherTexts } from './field-run'
export * from './layout'
export { idOf, learn } from './sources'

// A record says by field number the kind and the offsets of each value (texts without their quotes). What the schema
// would refuse, and whatever is out of the ordinary (escaped keys, fractions, many digits), is for the plain path.

/** Stands for every field that has no number. */
const UNKNOWN_FIELD: usize = FIELD_COUNT
const NO_FIELD: usize = FIELD_COUNT + 1

/** The most digits that 64 bits hold. */
const MAX_DIGITS: usize = 19
const MAX_EXACT: u64 = (1 << 53) - 1
/** Of memory. */
const PAGE: usize = 1 << 16

/** Why {@link walk} came to an end. */
const FULL: i32 = 0
const LAST: i32 = 1
const UNSUPPORTED: i32 = 2
const NEW_SOURCE: i32 = 3
export let status: i32 = FULL
/** Where to go on: an item that is no record yet, or behind the list of items. */
export let position: usize = 0
export let sourceStart: usize = 0
export let sourceEnd: usize = 0

let records: usize = 0
let textCount: usize = 0
let unknownCount: usize = 0
let keyEnd: usize = 0
let isNewSource: bool = false
/** The source at {@link sourceStart}, once JavaScript has seen it; -1: it has not. */
let metSource: i32 = -1

/** Makes room for a response of so many bytes. @returns false when there is no memory for it */
export function open(bytes: usize): bool {
  metSource = -1
  const end = RESPONSE + bytes
  const pages = <i32>((end + MARGIN + PAGE - 1) / PAGE) - memory.size()
  if (pages > 0 && memory.grow(pages) < 0) return false
  memory.fill(end, 0, MARGIN)
  return true
}

/** Says which number records give to the source that was not known. */
export function meet(source: i32): void {
  metSource = source
}

/** Walks over items from `start` on. @returns the number of records */
export function walk(start: usize): i32 {
  let at = space(start)
  textCount = 0
  unknownCount = 0
  for (records = 0; records < MAX_RECORDS && hasRoom(); records++) {
    position = at
    status = UNSUPPORTED
    if (load<u8>(at) !== OPEN_BRACE) return <i32>records
    isNewSource = false
    let next = item(at + 1)
    if (next === 0) {
      if (isNewSource) status = NEW_SOURCE
      return <i32>records
    }
    next = space(next)
    const byte = load<u8>(next)
    if (byte !== COMMA && byte !== CLOSE_BRACKET) return <i32>records
    store<u32>(ITEMS + 4 * records, at)
    if (byte === CLOSE_BRACKET) {
      position = next + 1
      status = LAST
      return <i32>(records + 1)
    }
    at = space(next + 1)
  }
  position = at
  status = FULL
  return <i32>records
}

function hasRoom(): bool {
  return textCount < MAX_TEXTS / 2 && unknownCount < MAX_UNKNOWN / 2
}

/** @param start after the item's opening brace */
function item(start: usize): usize {
  const kinds = KINDS + FIELD_SLOTS * records
  v128.store(kinds, i8x16.splat(0))
  const slot = FIELD_SLOTS * records + UNKNOWN
  store<u32>(STARTS + 4 * slot, unknownCount)
  let seen: u32 = 0
  let at = start
  let previous = UNKNOWN_FIELD
  while (true) {
    at = space(at)
    if (load<u8>(at) !== QUOTE) return 0
    const field = fieldAt(at, previous)
    if (field === NO_FIELD) return 0
    at = space(keyEnd)
    if (load<u8>(at) !== COLON) return 0
    at = space(at + 1)
    at = field === UNKNOWN_FIELD ? value(at, 0) : fieldValue(field, at)
    if (at === 0) return 0
    seen |= 1 << (<u32>field)
    at = space(at)
    const byte = load<u8>(at)
    if (byte === CLOSE_BRACE) break
    if (byte !== COMMA) return 0
    at++
    previous = field
  }
  if ((seen & REQUIRED) !== REQUIRED) return 0
  store<u32>(ENDS + 4 * slot, unknownCount)
  const time = timestamp(startOf(IMPORTED_AT), endOf(IMPORTED_AT))
  if (time === NO_TIME) return 0
  store<f64>(TIMES + 8 * records, <f64>time)
  if (load<u8>(kinds, SOURCE) === SOURCE_KIND && load<u8>(kinds, SOURCE_ID) === TEXT) {
    const source = load<i32>(SOURCES + 4 * records)
    if (source >= 0) store<u8>(kinds, isIdOf(source, startOf(SOURCE_ID), endOf(SOURCE_ID)), IS_SOURCE_ID)
  }
  if (hasSeparator(startOf(IDENTITY_NAME), endOf(IDENTITY_NAME))) store<u8>(kinds, 1, IS_LINE)
  return at + 1
}

/** Whether the text at [start, end) has a `:`, `;` or `|`, or an escape. */
function hasSeparator(start: usize, end: usize): bool {
  for (let at = start; at < end; at += 16) {
    const text = v128.load(at)
    const first = v128.or(i8x16.eq(text, i8x16.splat(COLON)), i8x16.eq(text, i8x16.splat(0x3b)))
    const second = v128.or(i8x16.eq(text, i8x16.splat(0x7c)), i8x16.eq(text, i8x16.splat(BACKSLASH)))
    const left = end - at
    const inside = left >= 16 ? 0xffff : (1 << (<i32>left)) - 1
    if ((i8x16.bitmask(v128.or(first, second)) & inside) !== 0) return true
  }
  return false
}

function startOf(field: usize): usize {
  return load<u32>(STARTS + 4 * (FIELD_SLOTS * records + field))
}

function endOf(field: usize): usize {
  return load<u32>(ENDS + 4 * (FIELD_SLOTS * records + field))
}

/** The number of the field whose key in quotes begins at `at`; sets `keyEnd`. */
function fieldAt(at: usize, previous: usize): usize {
  const expected = <usize>load<u8>(FOLLOWING + previous)
  if (isKey(at, expected)) return expected
  for (let field: usize = 0; field < FIELD_COUNT; field++) {
    if (isKey(at, field)) {
      store<u8>(FOLLOWING + previous, <u8>field)
      return field
    }
  }
  return unknownField(at + 1)
}

function isKey(at: usize, field: usize): bool {
  const key = KEYS + KEY_BYTES * field
  const first = v128.and(v128.xor(v128.load(at), v128.load(key)), v128.load(key, 32))
  const second = v128.and(v128.xor(v128.load(at, 16), v128.load(key, 16)), v128.load(key, 48))
  if (v128.any_true(v128.or(first, second))) return false
  keyEnd = at + load<u8>(KEY_LENGTHS + field)
  return true
}

function unknownField(at: usize): usize {
  keyEnd = string(at)
  if (keyEnd === 0 || hasEscapes) return NO_FIELD
  const end = keyEnd - 1
  // JSON.parse moves keys that look like an array's indices to the front.
  if (at < end && afterDigits(at) === end) return NO_FIELD
  const first = <usize>startOf(UNKNOWN)
  if (unknownCount === MAX_UNKNOWN || unknownCount - first === MAX_UNKNOWN_OF_ITEM) return NO_FIELD
  for (let i = first; i < unknownCount; i++) {
    const known = UNKNOWN_FIELDS + 8 * i
    if (
      <usize>(load<u32>(known, 4) - load<u32>(known)) === end - at &&
      memory.compare(load<u32>(known), at, end - at) === 0
    )
      return NO_FIELD
  }
  const found = UNKNOWN_FIELDS + 8 * unknownCount++
  store<u32>(found, at)
  store<u32>(found, end, 4)
  return UNKNOWN_FIELD
}

function afterDigits(start: usize): usize {
  let at = start
  while (isDigit(load<u8>(at))) at++
  return at
}

function fieldValue(field: usize, at: usize): usize {
  if (load<u8>(ALLOWED + field) === ANY) {
    const next = value(at, 0)
    return found(field, ANY, at, next, next)
  }
  switch (load<u8>(at)) {
    case QUOTE: {
      const next = string(at + 1)
      return found(field, hasEscapes ? ESCAPED_TEXT : TEXT, at + 1, next - 1, next)
    }
    case OPEN_BRACE: {
      if (field !== SOURCE) return 0
      const next = sourceAt(at)
      return found(field, SOURCE_KIND, at, next, next)
    }
    case OPEN_BRACKET: {
      const first = textCount
      const next = textList(at + 1)
      return found(field, LIST, first, textCount, next)
    }
    case 0x6e:
      return found(field, NULL, at, at, nothing(at))
    default: {
      const next = integer(field, at)
      return found(field, INTEGER, at, next, next)
    }
  }
}

/** Notes a value, if it is of a kind that the field may have. The last value of a repeated key counts, as in JSON.parse. */
function found(field: usize, kind: u8, start: usize, end: usize, next: usize): usize {
  if (next === 0 || (load<u8>(ALLOWED + field) & kind) === 0) return 0
  const index = FIELD_SLOTS * records + field
  store<u8>(KINDS + index, kind)
  store<u32>(STARTS + 4 * index, start)
  store<u32>(ENDS + 4 * index, end)
  return next
}

function sourceAt(at: usize): usize {
  if (metSource !== -1 && at === sourceStart) {
    store<i32>(SOURCES + 4 * records, metSource)
    return sourceEnd
  }
  const source = find(at)
  if (source >= 0) {
    store<i32>(SOURCES + 4 * records, source)
    return at + lengthOf(source)
  }
  const end = value(at, 0)
  if (end === 0) return 0
  sourceStart = at
  sourceEnd = end
  metSource = -1
  isNewSource = true
  return 0
}

function textList(start: usize): usize {
  let at = space(start)
  if (load<u8>(at) === CLOSE_BRACKET) return at + 1
  while (true) {
    if (load<u8>(at) !== QUOTE || textCount === MAX_TEXTS) return 0
    const first = at + 1
    at = string(first)
    if (at === 0) return 0
    const text = TEXTS + 12 * textCount++
    store<u32>(text, first)
    store<u32>(text, at - 1, 4)
    store<u32>(text, hasEscapes, 8)
    at = space(at)
    if (load<u8>(at) === CLOSE_BRACKET) return at + 1
    if (load<u8>(at) !== COMMA) return 0
    at = space(at + 1)
  }
}

/** Integers that are written as JavaScript writes them. */
function integer(field: usize, start: usize): usize {
  const isNegative = load<u8>(start) === MINUS
  const first = isNegative ? start + 1 : start
  let at = first
  let magnitude: u64 = 0
  for (; isDigit(load<u8>(at)); at++) magnitude = magnitude * 10 + <u64>(load<u8>(at) - ZERO)
  const digits = at - first
  if (digits === 0 || digits > MAX_DIGITS) return 0
  if (load<u8>(first) === ZERO && (digits > 1 || isNegative)) return 0
  if (magnitude > <u64>i64.MAX_VALUE + <u64>isNegative) return 0
  if (field === ID) {
    // What a double does not hold for certain JavaScript reads from the digits.
    const exact = isNegative ? -(<f64>magnitude) : <f64>magnitude
    store<f64>(IDS + 8 * records, magnitude > MAX_EXACT ? NaN : exact)
  }
  return at
}
