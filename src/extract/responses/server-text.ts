import { LEFT_OUT, repeatsSecret } from '../../core/index.ts'

const MAX_LENGTH = 300
// Looked through for secrets; the rest is never shown.
const MAX_EXAMINED = 4096

/**
 * Texts that the service wrote, fit for a message: each on one line, without control characters, cut short, and left
 * out altogether when it repeats a secret: any that this process knows, whatever the request was that brought it up.
 * Texts that only together repeat one are all left out.
 */
export function serverTexts(texts: readonly string[]): readonly string[] {
  const examined = texts.map((text) => text.slice(0, MAX_EXAMINED))
  const shown = examined.map((text) => (repeatsSecret(text) ? LEFT_OUT : cut(oneLine(text))))
  return repeatsSecret(shown.join('')) ? [LEFT_OUT] : shown
}

function cut(line: string): string {
  const characters = [...line]
  return characters.length <= MAX_LENGTH ? line : `${characters.slice(0, MAX_LENGTH).join('')}…`
}

function oneLine(text: string): string {
  // Cc: terminal escapes among them; Cf: direction overrides; Zl, Zp: line breaks by another name.
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
}
