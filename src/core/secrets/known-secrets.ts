import { decodedCodes, folded, MIN_IN_CODE, unescaped } from './encodings.ts'

export const LEFT_OUT = '[left out: it repeats a secret]'

/** `any`: also short ones, for strings from outside, which can be left out. `long`: for Spillway's own strings. */
type WhichSecrets = 'any' | 'long'

/** Folded. Kept for the life of the process: a response may repeat the secret of an earlier request or pipeline. */
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

export function unlessSecret(text: string, which: WhichSecrets = 'any'): string {
  return repeatsSecret(text, which) ? LEFT_OUT : text
}
