import { ExportError } from '../core/index.ts'

/**
 * Parses a whole answer. The parser's error is not kept: it quotes the text.
 * @throws ExportError `transient` when it is no JSON: answers cut short or replaced by a proxy look like that
 */
export function jsonBody(body: Uint8Array, where: string): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  } catch {
    throw new ExportError(
      'transient',
      'The answer is no JSON',
      where,
      'Run again later; if it stays so, check the address.',
    )
  }
}
