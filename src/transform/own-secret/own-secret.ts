import { type ExtraField, folded, parseTimestamp, unescaped } from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'
import { type Mask, maskText, REDACTED } from '../mask/index.ts'
import { givenSecret } from './given-secret.ts'
import { spelledPattern } from './spelled-pattern.ts'

/** One character is part of nearly every text. */
const MIN_LENGTH = 2

/** A secret or identity of a row, which the row's other texts must not repeat. */
export class OwnSecret {
  /** Whether a text holds it, in any spelling. */
  readonly isIn: (text: string) => boolean
  /** What its policy makes of it. */
  readonly #masked: string
  readonly #secret: string
  #pattern: RegExp | null | undefined

  private constructor(secret: string, mask: Mask | null) {
    this.#secret = secret
    this.#masked = mask === null ? REDACTED : maskText(mask, secret)
    this.isIn = givenSecret(secret)
  }

  /** Null when there is nothing to look for. */
  static of(secret: string | null | undefined, mask: Mask | null): OwnSecret | null {
    return secret == null || secret.length < MIN_LENGTH ? null : new OwnSecret(secret, mask)
  }

  /**
   * A text of a source, which all its rows have: a mask there would tell the secret to everyone who knows the source. So
   * it is masked only if it is no ordinary word or number, and codes are not searched.
   */
  maskedInSource(text: string): string {
    if (this.#secret.length < MIN_WITHIN || !isMixed(folded(this.#secret))) return text
    const isSpelledIn = givenSecret(this.#secret, 'skip')
    if (!isSpelledIn(text)) return text
    const masked = this.#replacedIn(text)
    return masked === null || isSpelledIn(masked) ? this.#masked : masked
  }

  /** Whether one of these may hold it: quicker than to search each, and true more often than it is so. */
  mayBeIn(values: readonly unknown[]): boolean {
    return this.#secret.length < MIN_WITHIN || this.isIn(values.join('\n'))
  }

  /** Whether the row tells it without its other texts. */
  isKnownBy(identity: string, queryValue: string): boolean {
    return this.isIn(this.maskedInLine(identity)) || this.isIn(queryValue)
  }

  /** The text with the secret masked where it stands; one that has it in a code, or is all of it, is masked as a whole. */
  maskedIn(text: string): string {
    if (!this.isIn(text)) return text
    const masked = this.#replacedIn(text)
    return masked === null || this.isIn(masked) ? this.#masked : masked
  }

  /**
   * An identity with the secret masked where it stands beside a `:`, `;` or `|`: then a line of a list has been taken for
   * an identity.
   */
  maskedInLine(identity: string): string {
    if (!/[:;|]/.test(identity) || !this.isIn(identity)) return identity
    const pattern = this.#spellings()?.source
    if (pattern === undefined) return this.#masked
    const beside = new RegExp(`(?<=[:;|]\\s*)(?:${pattern})|(?:${pattern})(?=\\s*[:;|])`, 'giu')
    return identity.replace(beside, () => this.#masked)
  }

  /**
   * The value of an additional column, masked. A column of numbers or times can hold no mask, so it gets null.
   * @param raw a number or time as the service wrote it
   * @param isOfSource whether it is a documented text of the source
   */
  maskedInValue(value: ColumnValue, type: ExtraField['type'], raw: string, isOfSource: boolean): ColumnValue {
    const masked = (text: string): string => (isOfSource ? this.maskedInSource(text) : this.maskedIn(text))
    switch (type) {
      case 'string':
        return masked(value as string)
      case 'strings':
        return (value as readonly string[]).map(masked)
      case 'json':
        return this.#maskedInJson(value as string)
      case 'int64':
        return this.isNumber(raw) || this.isNumber(String(value)) ? null : value
      case 'timestamp':
        return this.isNumber(raw) || parseTimestamp(this.#secret) === value ? null : value
      case 'boolean':
        return value
    }
  }

  /** Whether a number as it is written is the secret, or holds a long one. */
  isNumber(written: string): boolean {
    return written === this.#secret || (this.#secret.length >= MIN_IN_NUMBER && this.isIn(written))
  }

  /** In its strings, names and numbers; and as a whole, since a secret may look like JSON. */
  #maskedInJson(json: string): string {
    // Not by JSON.parse: of two members of one name it returns the last.
    const masked = json.replace(TOKENS, (token) => {
      if (token.startsWith('"')) {
        const text: string = JSON.parse(token)
        const shown = this.maskedIn(text)
        return shown === text ? token : JSON.stringify(shown)
      }
      return this.isNumber(token) ? JSON.stringify(this.#masked) : token
    })
    return this.isIn(masked) ? JSON.stringify(this.#masked) : masked
  }

  #replacedIn(text: string): string | null {
    const pattern = this.#spellings()
    return pattern === null ? null : text.replace(pattern, () => this.#masked)
  }

  #spellings(): RegExp | null {
    if (this.#pattern === undefined) this.#pattern = spelledPattern(this.#secret)
    return this.#pattern
  }
}

const MIN_WITHIN = 4

/** What {@link OwnSecret.maskedInSource} searches of these texts; null: nothing, since they have ordinary words only. */
export function searchedReadings(texts: readonly string[]): string | null {
  const readings = texts.flatMap(unescaped).map(folded).filter(isMixed)
  return readings.length === 0 ? null : readings.join('\n')
}

/** Whether letters and digits come together without a blank between. Each word is read twice, however long it is. */
function isMixed(text: string): boolean {
  return /(?<!\S)(?=\S*\p{L})(?=\S*\p{N})/u.test(text)
}

// Shorter numbers occur in longer ones, and in times, by chance.
const MIN_IN_NUMBER = 8

/** Strings with their quotes, and numbers and words, of compact JSON. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[^"{}[\],:]+/g
