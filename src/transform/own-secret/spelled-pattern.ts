/** Beyond so many characters no pattern is made. */
const MAX_SPELLED = 200

/**
 * Matches a text as it is and with any of its characters in JSON or percent escapes, whatever their case; null: it is too
 * long. Codes are not matched, nor what only equals it when it is {@link folded}.
 */
export function spelledPattern(text: string): RegExp | null {
  if (text.length > MAX_SPELLED) return null
  return new RegExp(Array.from(text, spelledCharacter).join(''), 'giu')
}

function spelledCharacter(character: string): string {
  if (/[+\s]/u.test(character)) return '(?:[+\\s]|%(?:0[9a-d]|2[0b])|\\\\(?:[ntrf]|u00(?:0[9a-d]|2[0b])))'
  const cases = new Set([character, character.toLowerCase(), character.toUpperCase()])
  const spellings: string[] = []
  for (const form of cases) {
    spellings.push(literally(Buffer.from(form).toString('hex').replace(/../g, '%$&')))
    const units = Array.from({ length: form.length }, (_, i) => form.charCodeAt(i))
    spellings.push(literally(units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')))
  }
  const short = JSON.stringify(character).slice(1, -1)
  if (short.startsWith('\\') && short.length === 2) spellings.unshift(literally(short))
  if (character === '/') spellings.unshift(literally('\\/'))
  // Last, since a percent sign is also the beginning of an escape.
  return `(?:${[...spellings, literally(character)].join('|')})`
}

function literally(text: string): string {
  return Array.from(text, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`).join('')
}
