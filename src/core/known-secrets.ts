import { createHash } from 'node:crypto'
import { inAnyDisguise } from './disguises.ts'

/** What stands in the place of a text that repeats a secret. */
export const LEFT_OUT = '[left out: it repeats a secret]'

/**
 * Everything secret that this process has read or been given, whatever it was for and however long ago: a service may
 * repeat in one answer what it got with another. Kept for as long as the process lives, and once for all of it, because
 * what one pipeline was given must not come out of another one either.
 *
 * `any` looks for all of them, also for those so short that ordinary words hold them: for texts by somebody else, which
 * can be left out without harm. `long` looks for those of twelve characters or more, or twenty characters of them in a
 * row: for texts of our own.
 */
export type WhichSecrets = 'any' | 'long'

/** Remembers a secret, and the digests of it that anybody with a dictionary can undo. */
export function learnSecret(secret: string): void {
  if (secret === '' || known.has(secret)) return
  known.add(secret)
  for (const form of formsOf(secret)) remember(comparable(form))
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

function remember(form: string): void {
  if (form === '') return
  const run = Math.min(form.length, RUN)
  for (const length of form.length < LONG ? [run] : [run, Math.min(form.length, LONG_RUN)]) {
    const { pieces, beginnings } = needles.get(length) ?? none()
    needles.set(length, { pieces, beginnings })
    for (let at = 0; at + length <= form.length; at++) {
      pieces.add(form.slice(at, at + length))
      beginnings[beginningAt(form, at)] = 1
    }
  }
}

/** Pieces of one length, and how they begin: most places in a text need no second look. */
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
  const bytes = Buffer.from(secret)
  for (const shift of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const sure = text.slice(shift === 0 ? 0 : 4, -2)
    if (sure.length >= 8) yield sure
  }
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
  // Marks go first: to order many of them in a row takes quadratic time.
  return text.replace(UNCOMPARED, '').normalize('NFKD').replace(UNCOMPARED, '').toLowerCase().toUpperCase()
}

const UNCOMPARED = /[\p{C}\p{Z}\p{M}"'`\\+\-/_=]+/gu
