import { type ExtraField, givenSecret, LEFT_OUT, parseTimestamp } from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'

/** A secret or identity of a row, which its other values must not repeat. */
export class OwnSecret {
  readonly #isIn: (text: string) => boolean

  readonly #secret: string

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
        return this.#isNumber(raw) || this.#isInNumber(String(value)) ? null : value
      case 'timestamp':
        return this.#isTime(raw, value) ? null : value
      case 'boolean':
      case 'strings':
        return value
    }
  }

  /** By what its strings, names and numbers mean; and as a whole, since a secret may look like JSON. */
  #isInJson(json: string): boolean {
    if (this.#isIn(json)) return true
    // Not by JSON.parse: of two members of one name it returns the last.
    for (const token of tokensOf(json)) {
      const isString = token.startsWith('"')
      if (this.#isIn(isString ? JSON.parse(token) : token)) return true
      if (!isString && (this.#isNumber(token) || this.#isInNumber(token))) return true
    }
    return false
  }

  #isNumber(written: string): boolean {
    if (written === this.#secret) return true
    const decimal = decimalOf(written)
    return (
      decimal !== null &&
      (decimal === decimalOf(this.#secret) || decimal === decimalOf(digitsOf(this.#secret)))
    )
  }

  #isInNumber(number: string): boolean {
    const digits = digitsOf(this.#secret)
    return digits.length >= MIN_IN_NUMBER && number.includes(digits)
  }

  #isTime(written: string, value: ColumnValue): boolean {
    if (written === this.#secret || parseTimestamp(this.#secret) === value) return true
    return this.#secret.length >= MIN_IN_NUMBER && this.#isIn(written)
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

/** A number, a date or a telephone number as digits alone; empty: it is none. */
function digitsOf(text: string): string {
  const plain = text.normalize('NFKC')
  return /^[\d\s+\-().,'_/]+$/.test(plain) ? plain.replace(/\D/g, '').replace(/^0+(?=\d)/, '') : ''
}

/** No number with a longer spelling is anybody's secret, and reading one takes quadratic time. */
const MAX_DECIMAL = 200

/** One spelling of a decimal number, whatever its sign: `12.50` and `125e-1` are `125e-1`. Null: it is none. */
function decimalOf(text: string): string | null {
  if (text.length > MAX_DECIMAL) return null
  const match = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d{1,9}))?$/i.exec(text.normalize('NFKC').trim())
  if (match === null) return null
  const [, integer = '', fraction = '', exponent = '0'] = match
  const digits = integer + fraction
  if (digits === '') return null
  const significant = digits.replace(/0+$/, '')
  const power = Number(exponent) - fraction.length + digits.length - significant.length
  const shown = significant.replace(/^0+/, '')
  return shown === '' ? '0' : `${shown}e${power}`
}
