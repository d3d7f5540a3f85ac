import { isUtf8 } from 'node:buffer'
import { ExportError, hasTooManyValues } from '../../core/index.ts'

// Tokens, reports and errors.
const MAX_BYTES = 16 << 20

/**
 * Parses a whole answer. The parser's error is not kept: it quotes the text.
 * @throws ExportError `transient` when it is no JSON in UTF-8: answers cut short or replaced by a proxy look like that;
 *   `data` when it is larger than any answer of this kind, or holds more values
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
  if (!isUtf8(body)) throw brokenAnswer('The answer is no UTF-8', where)
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  } catch {
    throw brokenAnswer('The answer is no JSON', where)
  }
}

function brokenAnswer(what: string, where: string): ExportError {
  return new ExportError('transient', what, where, 'Run again later; if it stays so, check the address.')
}
