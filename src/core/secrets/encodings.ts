/** Shorter codes decode to almost any string of that length, so shorter secrets are not looked for in them. */
export const MIN_IN_CODE = 4

/** A text as it is, and without its JSON and percent escapes. */
export function unescaped(text: string): readonly string[] {
  const readings = [text]
  if (text.includes('\\')) readings.push(text.replace(JSON_ESCAPE, unescapeJson))
  if (text.includes('%')) readings.push(text.replace(PERCENT_ESCAPES, unescapePercent))
  return readings
}

/** What the hex and base64 in a text encode, in lines, wherever in a longer string it begins. */
export function decodedCodes(text: string, minBytes: number): string {
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
export function folded(text: string): string {
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
