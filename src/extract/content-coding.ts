import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { ExportError } from '../core/index.ts'

export type ContentCoding = 'identity' | 'gzip' | 'unknown'

/** What a `Content-Encoding` header says. Only gzip is asked for. */
export function contentCoding(header: string): ContentCoding {
  switch (header.trim().toLowerCase()) {
    case '':
    case 'identity':
      return 'identity'
    case 'gzip':
    case 'x-gzip':
      return 'gzip'
    default:
      return 'unknown'
  }
}

/**
 * Decodes a whole body; never holds more than `limitBytes` of output.
 * @throws ExportError `data` beyond the limit or for an unknown coding, `transient` when the bytes are broken
 */
export async function decodeContent(
  body: Uint8Array,
  coding: ContentCoding,
  limitBytes: number,
  where: string,
): Promise<Uint8Array> {
  switch (coding) {
    case 'identity':
      return body
    case 'unknown':
      throw unknownCoding(where)
    case 'gzip':
      return gunzipped(body, limitBytes, where)
  }
}

export function tooLarge(limitBytes: number, where: string): ExportError {
  return new ExportError(
    'data',
    `The answer is larger than the ${limitBytes} bytes allowed`,
    where,
    'Lower extract.page_size, or raise service.max_response_bytes.',
  )
}

export function unknownCoding(where: string): ExportError {
  return new ExportError(
    'data',
    'The answer is compressed in a way that was not asked for',
    where,
    'Look for a proxy on the way that changes Content-Encoding; gzip and identity are understood.',
  )
}

// One hop to the thread pool per chunk: the default of 16 kB would make hundreds of a page.
const CHUNK_BYTES = 1024 * 1024
const gunzipAll = promisify(gunzip)

async function gunzipped(body: Uint8Array, limitBytes: number, where: string): Promise<Uint8Array> {
  try {
    const decoded = await gunzipAll(body, { maxOutputLength: limitBytes, chunkSize: CHUNK_BYTES })
    const { buffer, byteLength } = decoded
    // A small result may lie in a buffer that it shares with others; who gets it may transfer it.
    return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
      ? new Uint8Array(buffer)
      : new Uint8Array(decoded)
  } catch (error) {
    if (errorCode(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limitBytes, where)
    throw new ExportError(
      'transient',
      'The compressed answer is broken or cut short',
      where,
      'Run again later: the export goes on from where it stopped.',
    )
  }
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
