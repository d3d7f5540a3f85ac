import { type Int64, int64, MAX_INT64, MIN_INT64 } from '../../core/index.ts'
import { IndexList } from '../columns/index.ts'
import {
  ALLOWED,
  FIELD_COUNT,
  ID,
  KEY_ENDS,
  KEY_LENGTHS,
  KEY_WORDS,
  KEYS,
  KIND,
  REQUIRED,
  SOURCE,
  UNKNOWN,
} from './item-fields.ts'
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isDigit,
  type JsonScanner,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  ZERO,
} from './json-scanner.ts'
import type { KnownSource, SourceCache } from './source-cache.ts'

/** The most digits that 64 bits hold. */
const MAX_DIGITS = 19
/** So many digits behind the others are a number of their own in {@link largeInteger}. */
const LOW_DIGITS = 9
const MAX_UNKNOWN = 8

/**
 * Finds the fields of one credential in the answer's bytes. Nothing is copied: by field number, `kinds`
 * says what the value is, `starts` and `ends` where it stands (texts without their quotes). Lists of texts
 * lie in `texts`, three numbers each (start, end, 1 if it has escapes); for them, `starts` and `ends` are
 * positions there.
 *
 * What the schema would refuse, and whatever is out of the ordinary (escaped keys, numbers with fractions,
 * exponents or many digits), is not understood: such an item is for the plain path.
 */
export class ItemScanner {
  readonly kinds = new Uint8Array(FIELD_COUNT)
  readonly starts = new Uint32Array(FIELD_COUNT)
  readonly ends = new Uint32Array(FIELD_COUNT)
  readonly texts = new IndexList()
  /** Start and end of every key that has no field number, one after the other. */
  readonly unknownKeys = new IndexList()
  /** Start and end of their values. */
  readonly unknownValues = new IndexList()
  id: Int64 = 0
  source: KnownSource | null = null

  private bytes: Uint8Array = new Uint8Array(0)
  private view: DataView = new DataView(new ArrayBuffer(0))
  private keyEnd = 0
  /** The field that came after each field when last seen: items of a page mostly have one order. */
  private readonly following = new Uint8Array(FIELD_COUNT + 1)

  constructor(
    private readonly json: JsonScanner,
    private readonly sources: SourceCache,
  ) {}

  begin(bytes: Uint8Array): void {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /**
   * @param start after the item's opening brace
   * @returns the position after the item, or -1 when it is not understood
   */
  scan(start: number): number {
    const { bytes, json, kinds } = this
    for (let field = 0; field < FIELD_COUNT; field++) kinds[field] = KIND.missing
    this.texts.reset()
    this.unknownKeys.reset()
    this.unknownValues.reset()
    let at = start
    let previous = UNKNOWN
    for (;;) {
      at = json.space(at)
      if (bytes[at] !== QUOTE) return -1
      const field = this.field(at, previous)
      if (field < 0) return -1
      at = json.space(this.keyEnd)
      if (bytes[at] !== COLON) return -1
      at = json.space(at + 1)
      at = field === UNKNOWN ? this.unknownValue(at) : this.value(field, at)
      if (at < 0) return -1
      at = json.space(at)
      if (bytes[at] === CLOSE_BRACE) break
      if (bytes[at] !== COMMA) return -1
      at++
      previous = field
    }
    for (const field of REQUIRED) if (kinds[field] === KIND.missing) return -1
    return at + 1
  }

  /** The number of the field whose key in quotes begins at `at`, or -1; sets `keyEnd`. */
  private field(at: number, previous: number): number {
    const expected = this.following[previous]!
    if (this.isKey(at, expected)) return expected
    for (let field = 0; field < FIELD_COUNT; field++) {
      if (this.isKey(at, field)) {
        this.following[previous] = field
        return field
      }
    }
    return this.unknownField(at + 1)
  }

  private isKey(at: number, field: number): boolean {
    const { view } = this
    const last = at + KEY_LENGTHS[field]! - 4
    if (last + 4 > this.bytes.length) return false
    for (let i = at, word = field * KEY_WORDS; i < last; i += 4, word++) {
      if (view.getInt32(i, true) !== KEYS[word]) return false
    }
    if (view.getInt32(last, true) !== KEY_ENDS[field]) return false
    this.keyEnd = last + 4
    return true
  }

  private unknownField(at: number): number {
    const { bytes, json, unknownKeys } = this
    this.keyEnd = json.string(at)
    // JSON.parse moves keys that look like an array's indices to the front.
    if (this.keyEnd < 0 || json.hasEscapes || isDigit(bytes[at]!)) return -1
    if (unknownKeys.length === 2 * MAX_UNKNOWN) return -1
    for (let i = 0; i < unknownKeys.length; i += 2) {
      if (this.areEqual(unknownKeys.at(i), unknownKeys.at(i + 1), at, this.keyEnd - 1)) return -1
    }
    unknownKeys.add(at)
    unknownKeys.add(this.keyEnd - 1)
    return UNKNOWN
  }

  private unknownValue(at: number): number {
    const end = this.json.value(at)
    this.unknownValues.add(at)
    this.unknownValues.add(end)
    return end
  }

  private areEqual(start: number, end: number, otherStart: number, otherEnd: number): boolean {
    if (end - start !== otherEnd - otherStart) return false
    for (let i = start; i < end; i++) if (this.bytes[i] !== this.bytes[otherStart + i - start]) return false
    return true
  }

  private value(field: number, at: number): number {
    const { bytes, json } = this
    if (ALLOWED[field] === KIND.any) {
      const next = json.value(at)
      return this.found(field, KIND.any, at, next, next)
    }
    switch (bytes[at]) {
      case QUOTE: {
        const next = json.string(at + 1)
        return this.found(field, json.hasEscapes ? KIND.escapedText : KIND.text, at + 1, next - 1, next)
      }
      case OPEN_BRACE: {
        if (field !== SOURCE) return -1
        const next = this.sourceEnd(at)
        return this.found(field, KIND.source, at, next, next)
      }
      case OPEN_BRACKET: {
        const first = this.texts.length
        const next = this.textList(at + 1)
        return this.found(field, KIND.texts, first, this.texts.length, next)
      }
      case 0x6e:
        return this.found(field, KIND.null, at, at, json.null(at))
      default: {
        const next = this.integer(field, at)
        return this.found(field, KIND.integer, at, next, next)
      }
    }
  }

  /** Notes a value, if it is of a kind that the field may have. A repeated key's last value stands, as in JSON.parse. */
  private found(field: number, kind: number, start: number, end: number, next: number): number {
    if (next < 0 || (ALLOWED[field]! & kind) === 0) return -1
    this.kinds[field] = kind
    this.starts[field] = start
    this.ends[field] = end
    return next
  }

  private sourceEnd(at: number): number {
    this.source = this.sources.find(at)
    if (this.source !== null) return at + this.sources.length
    const end = this.json.value(at)
    if (end > 0) this.source = this.sources.learn(at, end)
    return this.source === null ? -1 : end
  }

  private textList(start: number): number {
    const { bytes, json, texts } = this
    let at = json.space(start)
    if (bytes[at] === CLOSE_BRACKET) return at + 1
    for (;;) {
      if (bytes[at] !== QUOTE) return -1
      const first = at + 1
      at = json.string(first)
      if (at < 0) return -1
      texts.add(first)
      texts.add(at - 1)
      texts.add(json.hasEscapes ? 1 : 0)
      at = json.space(at)
      if (bytes[at] === CLOSE_BRACKET) return at + 1
      if (bytes[at] !== COMMA) return -1
      at = json.space(at + 1)
    }
  }

  /** Integers that are written as JavaScript writes them. */
  private integer(field: number, start: number): number {
    const { bytes } = this
    const isNegative = bytes[start] === MINUS
    const first = isNegative ? start + 1 : start
    let at = first
    let value = 0
    for (; isDigit(bytes[at]!); at++) value = value * 10 + (bytes[at]! - ZERO)
    const digits = at - first
    if (digits === 0 || digits > MAX_DIGITS) return -1
    if (bytes[first] === ZERO && (digits > 1 || isNegative)) return -1
    // Beyond 2^53 the value is rounded, but never to below it.
    if (value > Number.MAX_SAFE_INTEGER) return this.largeInteger(field, first, at, isNegative)
    if (field === ID) this.id = isNegative ? -value : value
    return at
  }

  /** The digits [first, end), more than a double holds. */
  private largeInteger(field: number, first: number, end: number, isNegative: boolean): number {
    const middle = end - LOW_DIGITS
    const magnitude = BigInt(this.digits(first, middle)) * 1_000_000_000n + BigInt(this.digits(middle, end))
    const value = isNegative ? -magnitude : magnitude
    if (value < MIN_INT64 || value > MAX_INT64) return -1
    if (field === ID) this.id = int64(value)
    return end
  }

  private digits(from: number, to: number): number {
    let value = 0
    for (let at = from; at < to; at++) value = value * 10 + (this.bytes[at]! - ZERO)
    return value
  }
}
