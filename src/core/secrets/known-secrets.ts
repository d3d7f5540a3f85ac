import { decodedCodes, folded, MIN_IN_CODE, unescaped } from './encodings.ts'

/** Replaces a string that repeats a secret. */
export const LEFT_OUT = '[left out: it repeats a secret]'

/**
 * This module keeps all secrets that the process has read or received, for its whole life: a response may repeat the
 * secret of an earlier request. The list is process-wide, because every `ExportError` checks its message against it,
 * and the secrets of one pipeline must not appear in messages of another pipeline of the same process.
 *
 * `any` looks for all secrets, also short ones that are part of ordinary words. It is for strings from outside, which
 * can be left out without harm. `long` looks for secrets of at least twelve characters. It is for Spillway's own strings.
 */
type WhichSecrets = 'any' | 'long'

/** In the form in which they are compared. */
const known = new Set<string>()

const LONG = 12

export function learnSecret(secret: string): void {
  const form = folded(secret)
  if (form.trim() !== '') known.add(form)
}

/** Whether a string contains a known secret, plain or in JSON, percent, hex or base64. */
export function repeatsSecret(text: string, which: WhichSecrets = 'any'): boolean {
  const wanted = which === 'any' ? [...known] : [...known].filter(({ length }) => length >= LONG)
  if (wanted.length === 0 || text === '') return false
  const inCode = wanted.filter((secret) => Buffer.byteLength(secret) >= MIN_IN_CODE)
  const minBytes = which === 'any' ? MIN_IN_CODE : LONG
  return unescaped(text).some((reading) => {
    const [line, codes] = [folded(reading), folded(decodedCodes(reading, minBytes))]
    return wanted.some((secret) => line.includes(secret)) || inCode.some((secret) => codes.includes(secret))
  })
}

/** The string, or {@link LEFT_OUT} if it repeats a secret. */
export function unlessSecret(text: string, which: WhichSecrets = 'any'): string {
  return repeatsSecret(text, which) ? LEFT_OUT : text
}
