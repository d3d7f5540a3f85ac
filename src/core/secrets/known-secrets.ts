import { createHash } from 'node:crypto'
import { inAnyDisguise, inAnyEscape } from './disguises.ts'

/** Replaces a text that repeats a secret. */
export const LEFT_OUT = '[left out: it repeats a secret]'

/**
 * Everything secret that this process has read or been given, whatever it was for and however long ago: a service may
 * repeat in one response what it was sent with another request. The list has no owner that is passed in: every
 * `ExportError` clears its text when it is made, and the secrets of one pipeline must not come out of another one of the
 * same process (decision 18).
 *
 * `any` looks for all of them, also for those so short that ordinary words hold them: for texts by somebody else, which
 * can be left out without harm. `long` looks for those of twelve characters or more, or twenty characters of them in a
 * row: for texts of our own.
 */
type WhichSecrets = 'any' | 'long'

/**
 * Remembers a secret, and the digests of it that anybody with a dictionary can undo.
 * @param inOurs what of it a text of our own may not hold: a longer piece, or only the whole, as with addresses, whose
 *   domains have every right to be named
 */
export function learnSecret(secret: string, inOurs: 'piece' | 'whole' = 'piece'): void {
  if (secret === '' || known.has(secret)) return
  known.add(secret)
  for (const form of formsOf(secret)) remember(comparable(form), inOurs === 'whole' ? form.length : LONG_RUN)
  // Of what is left out in comparing nothing may be left: quotes alone, or accents.
  if (comparable(secret) === '' && secret.trim() !== '') bare.push(secret)
}

/** Whether a text holds a known secret, or a longer piece of one, in any usual encoding. */
export function repeatsSecret(text: string, which: WhichSecrets = 'any'): boolean {
  if (known.size === 0 || text === '') return false
  const lengths = [...needles.keys()].filter((length) => which === 'any' || length >= LONG)
  if (lengths.length === 0 && (which === 'long' || bare.length === 0)) return false
  return inAnyDisguise(text, (candidate) => {
    const line = comparable(candidate)
    return (
      lengths.some((length) => holdsOneOf(line, needles.get(length)!, length)) ||
      (which === 'any' && bare.some((secret) => candidate.includes(secret)))
    )
  })
}

/** The text, or {@link LEFT_OUT} when it repeats a secret. */
export function unlessSecret(text: string, which: WhichSecrets = 'any'): string {
  return repeatsSecret(text, which) ? LEFT_OUT : text
}

// Shorter secrets are in most texts by chance, so they count only as the whole text.
const MIN_WITHIN = 4
// Characters of the shortest digest that is looked for: MD5 in base64, without its padding.
const DIGEST_RUN = 22
// Shorter codes are no evidence, see `base64Of`.
const CODE_RUN = 8
// Longer ones may be wrapped.
const WRAPPED_RUN = 60

/**
 * Whether a text is a secret that is not to be remembered, or holds it: as it is, escaped, in hex or base64, or as a
 * digest without a key. Meant for the secret of each row, so encodings of encodings are not looked for.
 */
export function repeatsGiven(text: string, secret: string): boolean {
  if (text === '' || secret === '') return false
  const isWithin = secret.length >= MIN_WITHIN
  if (text === secret || (isWithin && text.includes(secret))) return true
  const form = comparable(secret)
  const { lines, plain, run } = readings(text)
  const isFound =
    plain.includes(secret) ||
    (form !== '' &&
      lines.some((line) => (form.length >= MIN_WITHIN ? line.includes(form) : line === form))) ||
    // Base64 has a third more characters than its text, of which the outer ones may be others'.
    (isWithin &&
      run >= Math.max(CODE_RUN, Math.min(secret.length, WRAPPED_RUN)) &&
      holdsCode(lines, encodingsOf(secret))) ||
    (run >= DIGEST_RUN && holdsCode(lines, digestsOf(secret)))
  // It is not kept in memory for longer than the row.
  if (isFound) knownReadings.delete(text)
  return isFound
}

function holdsCode(lines: readonly string[], codes: Iterable<string>): boolean {
  for (const code of codes) {
    const form = comparable(code)
    if (lines.some((line) => line.includes(form))) return true
  }
  return false
}

/** What a text may mean, ready to be compared, and its longest run of characters that codes are made of. */
type Readings = { readonly plain: readonly string[]; readonly lines: readonly string[]; readonly run: number }

/** Of short texts: many rows have the same. */
const knownReadings = new Map<string, Readings>()
const MAX_READINGS = 2048
const MAX_KEPT_LENGTH = 256

function readings(text: string): Readings {
  const before = knownReadings.get(text)
  if (before !== undefined) return before
  const plain: string[] = []
  inAnyEscape(text, (candidate) => {
    plain.push(candidate)
    return false
  })
  let run = 0
  for (const [code] of text.matchAll(/[0-9a-z+/_-]+/gi)) run = Math.max(run, code.length)
  const made = { plain, lines: plain.map(comparable), run }
  if (text.length <= MAX_KEPT_LENGTH) {
    if (knownReadings.size >= MAX_READINGS) knownReadings.clear()
    knownReadings.set(text, made)
  }
  return made
}

// So many characters of a secret in a row are no coincidence in a text by somebody else.
const RUN = 8
// Shorter secrets are words that a text of our own may hold.
const LONG = 12
// And so many in one of our own: names of pipelines and folders may well have some in common with a key.
const LONG_RUN = 20

const known = new Set<string>()
/** Pieces to look for, by their length: secrets whole, and of longer ones every run. */
const needles = new Map<number, Needles>()
const bare: string[] = []

function remember(form: string, longRun: number): void {
  if (form === '') return
  const run = Math.min(form.length, RUN)
  for (const length of form.length < LONG ? [run] : [run, Math.min(form.length, longRun)]) {
    const { pieces, beginnings } = needles.get(length) ?? none()
    needles.set(length, { pieces, beginnings })
    for (let at = 0; at + length <= form.length; at++) {
      pieces.add(form.slice(at, at + length))
      beginnings[beginningAt(form, at)] = 1
    }
  }
}

/** Pieces of one length, and how they begin: at most offsets of a text nothing else has to be compared. */
type Needles = { readonly pieces: Set<string>; readonly beginnings: Uint8Array }

const BEGINNINGS = 1 << 16

function none(): Needles {
  return { pieces: new Set(), beginnings: new Uint8Array(BEGINNINGS) }
}

/** A number for the two characters that begin there. */
function beginningAt(text: string, at: number): number {
  return (text.charCodeAt(at) * 251 + text.charCodeAt(at + 1)) & (BEGINNINGS - 1)
}

function holdsOneOf(text: string, { pieces, beginnings }: Needles, length: number): boolean {
  for (let at = 0; at + length <= text.length; at++) {
    if (length > 1 && beginnings[beginningAt(text, at)] === 0) continue
    if (pieces.has(text.slice(at, at + length))) return true
  }
  return false
}

const DIGESTS = ['md5', 'sha1', 'sha256', 'sha512']

/**
 * The secret, and what comparing can't undo: base64 after a change of case, by where in a longer text the secret
 * begins, and digests.
 */
function* formsOf(secret: string): Generator<string> {
  yield secret
  yield* base64Of(secret)
  yield* digestsOf(secret)
}

function* encodingsOf(secret: string): Generator<string> {
  yield Buffer.from(secret).toString('hex')
  yield* base64Of(secret)
}

function* base64Of(secret: string): Generator<string> {
  const bytes = Buffer.from(secret)
  for (const shift of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const sure = text.slice(shift === 0 ? 0 : 4, -2)
    if (sure.length >= 8) yield sure
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
 * A text as texts are compared: without what is added or lost on the way (white space, control characters, quotes,
 * backslashes, accents, and the characters in which kinds of base64 differ), and in one case.
 */
function comparable(text: string): string {
  // Most texts are of these characters, for which the rest takes many times as long.
  if (PRINTABLE_ASCII.test(text)) return text.replace(UNCOMPARED_ASCII, '').toUpperCase()
  // Marks go first: to order many of them in a row takes quadratic time.
  return text.replace(UNCOMPARED, '').normalize('NFKD').replace(UNCOMPARED, '').toLowerCase().toUpperCase()
}

const PRINTABLE_ASCII = /^[ -~]*$/
const UNCOMPARED_ASCII = /[ "'`\\+\-/_=]+/g
const UNCOMPARED = /[\p{C}\p{Z}\p{M}"'`\\+\-/_=]+/gu
