import { isUtf8 } from 'node:buffer'
import { ExportError } from '../../core/index.ts'
import { hasTooManyValues } from '../../rows/index.ts'

// Tokens, reports and errors.
const MAX_BYTES = 16 << 20

/** The parser's error is not kept: it quotes the text. @throws ExportError `transient`: no JSON, `data`: too large */
export function jsonBody(body: Uint8Array, where: string): unknown {
  const isLarge = body.byteLength > MAX_BYTES
  if (isLarge || hasTooManyValues(body)) {
    const excess = isLarge
      ? `is larger than ${MAX_BYTES} bytes`
      : 'holds more values than any response of this kind'
    const next = 'Check the address. If the error persists, report it to the service.'
    throw new ExportError({ kind: 'data', what: `The response ${excess}`, where, next })
  }
  if (!isUtf8(body)) throw brokenResponse('The response is no UTF-8', where)
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  } catch {
    throw brokenResponse('The response is no JSON', where)
  }
}

function brokenResponse(what: string, where: string): ExportError {
  return new ExportError({
    kind: 'transient',
    what,
    where,
    next: 'Run again later. If the error persists, check the address.',
  })
}
