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

/** Shorter codes decode to almost any string of that length, so shorter secrets are not looked for in them. */
const MIN_IN_CODE = 4

/** A text as it is, and without its JSON and percent escapes. */
function unescaped(text: string): readonly string[] {
  const readings = [text]
  if (text.includes('\\')) readings.push(text.replace(JSON_ESCAPE, unescapeJson))
  if (text.includes('%')) readings.push(text.replace(PERCENT_ESCAPES, unescapePercent))
  return readings
}

/** What the hex and base64 in a text encode, in lines, wherever in a longer string it begins. */
function decodedCodes(text: string, minBytes: number): string {
  const parts: string[] = []
  for (const [run] of text.matchAll(CODE)) {
    if (run.length < minBytes * BASE64_CHARACTERS) continue
    for (let skip = 0; skip < 4; skip++) parts.push(Buffer.from(run.slice(skip), 'base64').toString())
    for (const [digits] of run.matchAll(HEX)) {
      if (digits.length < 2 * minBytes) continue
      for (let skip = 0; skip < 2; skip++) parts.push(Buffer.from(digits.slice(skip), 'hex').toString())
    }
  }
  return parts.join('\n')
}

/** Case, the two spellings of a blank, and lone surrogates, which most encodings cannot hold, do not count. */
function folded(text: string): string {
  return text.toWellFormed().replace(/[+\s]/g, ' ').toUpperCase()
}

const JSON_ESCAPE = /\\(?:u([0-9a-f]{4})|(["\\/bfnrt]))/gi
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

function unescapeJson(_: string, unit: string | undefined, character = ''): string {
  if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit, 16))
  return CONTROLS[character.toLowerCase()] ?? character
}

const PERCENT_ESCAPES = /(?:%[0-9a-f]{2})+/gi

function unescapePercent(escapes: string): string {
  return Buffer.from(escapes.replaceAll('%', ''), 'hex').toString()
}

const BASE64_CHARACTERS = 8 / 6
const CODE = /[0-9a-z+/_-]{6,}/gi
const HEX = /[0-9a-f]{8,}/gi
