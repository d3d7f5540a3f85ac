const MAX_LENGTH = 300
// Looked through for secrets; the rest is never shown.
const MAX_EXAMINED = 4096
// So many characters of a secret in a row are no coincidence.
const RUN_LENGTH = 12

/**
 * A text that the service wrote, fit for a message: one line, no control characters, cut short, and left
 * out altogether when it repeats one of the secrets that were sent, or a longer piece of one.
 */
export function serverText(text: string, secrets: readonly string[]): string {
  const line = oneLine(text.slice(0, MAX_EXAMINED))
  if (secrets.some((secret) => repeats(line, secret))) return '[left out: it repeats a secret]'
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

function repeats(line: string, secret: string): boolean {
  const text = line.toLowerCase()
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())]
  return forms.some((form) => hasRun(text, oneLine(form).toLowerCase()))
}

function hasRun(text: string, secret: string): boolean {
  if (secret === '') return false
  const length = Math.min(secret.length, RUN_LENGTH)
  for (let at = 0; at + length <= secret.length; at++) {
    if (text.includes(secret.slice(at, at + length))) return true
  }
  return false
}
