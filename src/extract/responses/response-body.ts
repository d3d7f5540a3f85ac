import { isUtf8 } from 'node:buffer'
import { ExportError, hasTooManyValues, LEFT_OUT, repeatsSecret } from '../../core/index.ts'

const MAX_LENGTH = 300

// Looked through for secrets; the rest is never shown.
const MAX_EXAMINED = 4096

// Tokens, reports and errors.
const MAX_BYTES = 16 << 20

/**
 * Parses a whole response. The parser's error is not kept: it quotes the text.
 * @throws ExportError `transient` when it is no JSON in UTF-8: responses cut short or replaced by a proxy look like that;
 *   `data` when it is larger than any response of this kind, or holds more values
 */
export function jsonBody(body: Uint8Array, where: string): unknown {
  if (body.byteLength > MAX_BYTES) {
    const next = 'Check the address; if it stays so, report it to the service.'
    throw new ExportError('data', `The answer is larger than ${MAX_BYTES} bytes`, where, next)
  }
  if (hasTooManyValues(body)) {
    const next = 'Check the address; if it stays so, report it to the service.'
    throw new ExportError('data', 'The answer holds more values than any answer of this kind', where, next)
  }
  if (!isUtf8(body)) throw brokenResponse('The answer is no UTF-8', where)
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  } catch {
    throw brokenResponse('The answer is no JSON', where)
  }
}

function brokenResponse(what: string, where: string): ExportError {
  return new ExportError('transient', what, where, 'Run again later; if it stays so, check the address.')
}

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
