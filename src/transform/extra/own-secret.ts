import { type ExtraField, givenSecret, LEFT_OUT, parseTimestamp } from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'

/** A secret or identity of a row, which its other values must not repeat. */
export class OwnSecret {
  readonly #secret: string
  readonly #isIn: (text: string) => boolean

  constructor(secret: string) {
    this.#secret = secret
    this.#isIn = givenSecret(secret)
  }

  /**
   * The value, or what stands for one that repeats the secret. A string is left out as a whole; a column of numbers or
   * times can hold no other string.
   * @param raw a number or time as the service wrote it
   */
  takenOutOf(value: ColumnValue, type: ExtraField['type'], raw: string): ColumnValue {
    switch (type) {
      case 'string':
        return this.#isIn(value as string) ? LEFT_OUT : value
      case 'json':
        return this.#isInJson(value as string) ? JSON.stringify(LEFT_OUT) : value
      case 'int64':
        return this.#isNumber(raw) || this.#isNumber(String(value)) ? null : value
      case 'timestamp':
        return this.#isNumber(raw) || parseTimestamp(this.#secret) === value ? null : value
      case 'boolean':
      case 'strings':
        return value
    }
  }

  /** By its strings, names and numbers; and as a whole, since a secret may look like JSON. */
  #isInJson(json: string): boolean {
    if (this.#isIn(json)) return true
    // Not by JSON.parse: of two members of one name it returns the last.
    for (const token of tokensOf(json)) {
      if (token.startsWith('"') ? this.#isIn(JSON.parse(token)) : this.#isNumber(token)) return true
    }
    return false
  }

  #isNumber(written: string): boolean {
    return written === this.#secret || (this.#secret.length >= MIN_IN_NUMBER && this.#isIn(written))
  }
}

// Shorter numbers occur in longer ones, and in times, by chance.
const MIN_IN_NUMBER = 8

/** Strings with their quotes, and numbers and words, of compact JSON. */
function* tokensOf(json: string): Generator<string> {
  for (let start = 0, at = 0; at < json.length; start = at) {
    if (json[at] === '"') {
      for (at++; json[at] !== '"'; at++) if (json[at] === '\\') at++
      yield json.slice(start, ++at)
    } else if (PUNCTUATION.includes(json[at]!)) at++
    else {
      while (at < json.length && !PUNCTUATION.includes(json[at]!)) at++
      yield json.slice(start, at)
    }
  }
}

const PUNCTUATION = '{}[],:'
