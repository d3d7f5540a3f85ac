import { createHash } from 'node:crypto'
import { inAnyEncoding, inAnyEscape } from './encodings.ts'

/** Replaces a string that repeats a secret. */
export const LEFT_OUT = '[left out: it repeats a secret]'

/**
 * This module keeps all secrets that the process has read or received, for its whole life: a response may repeat the
 * secret of an earlier request. The list is process-wide, because every `ExportError` checks its message against it,
 * and the secrets of one pipeline must not appear in messages of another pipeline of the same process (decision 18).
 *
 * `any` looks for all secrets, also short ones that are part of ordinary words. It is for strings from outside, which
 * can be left out without harm. `long` looks for secrets of at least twelve characters, and for twenty consecutive
 * characters of longer secrets. It is for Spillway's own strings.
 */
type WhichSecrets = 'any' | 'long'

/**
 * Adds a secret, and its unkeyed digests, which a dictionary attack can reverse.
 * @param inOurs what Spillway's own strings must not contain: long parts of the secret, or only all of it. `whole` is
 *   for e-mail addresses, because their domains may be named
 */
export function learnSecret(secret: string, inOurs: 'part' | 'whole' = 'part'): void {
  if (secret === '' || known.has(secret)) return
  known.add(secret)
  // Also the forms that `comparable` cannot reverse: base64 after a change of case, at each offset, and digests.
  for (const form of [secret, ...base64Of(secret), ...digestsOf(secret)])
    remember(comparable(form), inOurs === 'whole' ? form.length : LONG_RUN)
  // A secret of quotes or accents alone has no comparable form.
  if (comparable(secret) === '' && secret.trim() !== '') unmatchable.push(secret)
}

/** Whether a string contains a known secret, or a long part of one, in any usual encoding. */
export function repeatsSecret(text: string, which: WhichSecrets = 'any'): boolean {
  if (known.size === 0 || text === '') return false
  const lengths = [...encodings.keys()].filter((length) => which === 'any' || length >= LONG)
  if (lengths.length === 0 && (which === 'long' || unmatchable.length === 0)) return false
  return inAnyEncoding(text, (candidate) => {
    const line = comparable(candidate)
    return (
      lengths.some((length) => holdsOneOf(line, encodings.get(length)!, length)) ||
      (which === 'any' && unmatchable.some((secret) => candidate.includes(secret)))
    )
  })
}

/** The string, or {@link LEFT_OUT} if it repeats a secret. */
export function unlessSecret(text: string, which: WhichSecrets = 'any'): string {
  return repeatsSecret(text, which) ? LEFT_OUT : text
}

// Shorter secrets occur in most strings by chance, so only a string that equals the secret counts.
const MIN_WITHIN = 4
// Length of the shortest digest: MD5 in base64, without padding.
const DIGEST_RUN = 22
// Longer codes may be wrapped.
const WRAPPED_RUN = 60

/**
 * A function that says whether a string contains this secret: plain, escaped, in hex or base64, or as an unkeyed
 * digest. The secret is not added to the known ones. It is called for the secret of each row, so it does not look for
 * hex or base64 within other encodings.
 */
export function givenSecret(secret: string): (text: string) => boolean {
  const sound = soundText(secret)
  const form = comparable(sound)
  const bytes = Buffer.from(secret)
  const codes = once(() => [bytes.toString('hex'), ...base64Of(secret)].map(comparable))
  const digests = once(() => [...digestsOf(secret)].map(comparable))
  const exact = once(() => exactBase64(bytes))
  const isIn = (text: string): boolean => {
    const { plain, lines, run } = readings(text)
    if (isWithin(plain, sound) || isWithin(lines, form)) return true
    // Of such a secret little more than its punctuation is left to compare.
    if (form.length < MIN_WITHIN && isWithin(plain.map(folded), folded(sound))) return true
    // Base64 is a third longer than its input.
    const isLongEnough =
      bytes.length >= MIN_WITHIN && run >= Math.min(Math.floor((8 * bytes.length) / 6), WRAPPED_RUN)
    return (
      (isLongEnough && (holdsBase64(plain, exact(), bytes) || holdsCode(lines, codes()))) ||
      (run >= DIGEST_RUN && holdsCode(lines, digests()))
    )
  }
  return (text) => {
    if (text === '' || secret === '') return false
    if (text === secret || (secret.length >= MIN_WITHIN && text.includes(secret))) return true
    const isFound = isIn(text)
    // A string that holds the secret of a row must not stay in memory longer than the row.
    if (isFound) knownReadings.delete(text)
    return isFound
  }
}

/** Columns, and what quotes a string, may replace lone surrogates by U+FFFD. */
function soundText(text: string): string {
  return text.toWellFormed().replaceAll('\u{FFFD}', '')
}

/** Case, width and blanks only: all characters of {@link comparable} that it drops are kept. */
function folded(text: string): string {
  const line = text.normalize('NFKC').replace(/[+\s]/g, ' ')
  return line.toLowerCase().toUpperCase().normalize('NFKC')
}

function isWithin(texts: readonly string[], part: string): boolean {
  if (part === '') return false
  return texts.some((text) => (part.length >= MIN_WITHIN ? text.includes(part) : text === part))
}

function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

function holdsCode(lines: readonly string[], codes: readonly string[]): boolean {
  return codes.some((code) => lines.some((line) => line.includes(code)))
}

/** For each offset modulo 3: the characters that encode nothing but bytes of the secret, and how many precede them. */
type Base64Code = { readonly shift: number; readonly skipped: number; readonly sure: string }

function exactBase64(bytes: Buffer): readonly Base64Code[] {
  return [0, 1, 2].map((shift) => {
    const skipped = Math.ceil((8 * shift) / 6)
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    return { shift, skipped, sure: text.slice(skipped, Math.floor((8 * (shift + bytes.length)) / 6)) }
  })
}

/** Four characters may be a word, so what was found is decoded, with the characters around it. */
function holdsBase64(texts: readonly string[], codes: readonly Base64Code[], bytes: Buffer): boolean {
  return texts.some((text) => {
    const standard = text.replace(/[-_\s]/g, (found) => (found === '-' ? '+' : found === '_' ? '/' : ''))
    return codes.some(({ shift, skipped, sure }) => {
      for (let at = standard.indexOf(sure, skipped); at !== -1; at = standard.indexOf(sure, at + 1)) {
        const found = Buffer.from(standard.slice(at - skipped, at + sure.length + 1), 'base64')
        if (found.subarray(shift, shift + bytes.length).equals(bytes)) return true
      }
      return false
    })
  })
}

/** The decodings of a string, the same in comparable form, and the length of their longest run of code characters. */
type Readings = { readonly plain: readonly string[]; readonly lines: readonly string[]; readonly run: number }

/** A cache for short strings, because many rows have the same ones. */
const knownReadings = new Map<string, Readings>()
const MAX_READINGS = 2048
const MAX_KEPT_LENGTH = 256

function readings(text: string): Readings {
  const before = knownReadings.get(text)
  if (before !== undefined) return before
  const plain: string[] = []
  inAnyEscape(text, (candidate) => {
    plain.push(soundText(candidate))
    return false
  })
  let run = 0
  for (const candidate of plain) {
    for (const [code] of candidate.matchAll(/[0-9a-z+/_-]+/gi)) run = Math.max(run, code.length)
  }
  const made = { plain, lines: plain.map(comparable), run }
  if (text.length <= MAX_KEPT_LENGTH) {
    if (knownReadings.size >= MAX_READINGS) knownReadings.clear()
    knownReadings.set(text, made)
  }
  return made
}

// Consecutive characters of a secret that are not a coincidence in a string from outside.
const RUN = 8
// Shorter secrets may be ordinary words in Spillway's own strings.
const LONG = 12
// The same for Spillway's own strings: names of pipelines and folders may share some characters with a key.
const LONG_RUN = 20

const known = new Set<string>()
/** Substrings to look for, by length: short secrets, and every run of longer secrets. */
const encodings = new Map<number, Encodings>()
const unmatchable: string[] = []

function remember(form: string, longRun: number): void {
  if (form === '') return
  const run = Math.min(form.length, RUN)
  for (const length of form.length < LONG ? [run] : [run, Math.min(form.length, longRun)]) {
    const { substrings, beginnings } = encodings.get(length) ?? {
      substrings: new Set<string>(),
      beginnings: new Uint8Array(BEGINNINGS),
    }
    encodings.set(length, { substrings, beginnings })
    for (let at = 0; at + length <= form.length; at++) {
      substrings.add(form.slice(at, at + length))
      beginnings[beginningAt(form, at)] = 1
    }
  }
}

/** Substrings of one length, and hashes of their first characters, which rule out most offsets of a string. */
type Encodings = { readonly substrings: Set<string>; readonly beginnings: Uint8Array }

const BEGINNINGS = 1 << 16

/** A hash of the two characters at this offset. */
function beginningAt(text: string, at: number): number {
  return (text.charCodeAt(at) * 251 + text.charCodeAt(at + 1)) & (BEGINNINGS - 1)
}

function holdsOneOf(text: string, { substrings, beginnings }: Encodings, length: number): boolean {
  for (let at = 0; at + length <= text.length; at++) {
    if (length > 1 && beginnings[beginningAt(text, at)] === 0) continue
    if (substrings.has(text.slice(at, at + length))) return true
  }
  return false
}

const DIGESTS = ['md5', 'sha1', 'sha256', 'sha512']

// Shorter codes are not evidence: in upper case they may be words.
const CODE_RUN = 8

function* base64Of(secret: string): Generator<string> {
  const bytes = Buffer.from(secret)
  for (const shift of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    // The outer characters also encode neighboring bytes.
    const inner = text.slice(shift === 0 ? 0 : 4, -2)
    if (inner.length >= CODE_RUN) yield inner
  }
}

function* digestsOf(secret: string): Generator<string> {
  const bytes = Buffer.from(secret)
  for (const algorithm of DIGESTS) {
    const digest = createHash(algorithm).update(bytes).digest()
    yield digest.toString('hex')
    yield digest.toString('base64')
  }
}

/**
 * The form of a string for comparisons: in upper case, without characters that are often added or lost (white space,
 * control characters, quotes, backslashes, accents, and the characters in which variants of base64 differ).
 */
function comparable(text: string): string {
  // A fast path: most strings are printable ASCII.
  if (PRINTABLE_ASCII.test(text)) return text.replace(UNCOMPARED_ASCII, '').toUpperCase()
  // Marks are removed first: the normalization of many consecutive marks takes quadratic time.
  return text.replace(UNCOMPARED, '').normalize('NFKD').replace(UNCOMPARED, '').toLowerCase().toUpperCase()
}

const PRINTABLE_ASCII = /^[ -~]*$/
const UNCOMPARED_ASCII = /[ "'`\\+\-/_=]+/g
const UNCOMPARED = /[\p{C}\p{Z}\p{M}"'`\\+\-/_=]+/gu
