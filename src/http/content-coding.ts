import { createGunzip } from 'node:zlib'
import { type BufferPool, ExportError } from '../core/index.ts'
import { bodyBuffer } from './body-buffer.ts'

export type ContentCoding = 'identity' | 'gzip' | 'unknown'

/** Parses a `Content-Encoding` header. Only gzip is requested. */
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

type DecodeLimits = {
  /** The limit of the output. */
  readonly limitBytes: number
  /** The pool of the output's memory. */
  readonly buffers: BufferPool
  readonly where: string
}

export function tooLarge(limitBytes: number, where: string): ExportError {
  return new ExportError({
    kind: 'data',
    what: `The response is larger than the ${limitBytes} bytes allowed`,
    where,
    next: 'Lower extract.page_size, or raise service.max_response_bytes.',
  })
}

export function unknownCoding(where: string): ExportError {
  return new ExportError({
    kind: 'data',
    what: 'The response has a compression that was not requested',
    where,
    next: 'Look for a proxy that changes Content-Encoding; gzip and identity are supported.',
  })
}

// Each chunk takes one task of the thread pool: the default of 16 kB would make hundreds of tasks for a page.
const CHUNK_BYTES = 256 * 1024

/**
 * Decodes a complete body.
 * @throws ExportError `data` beyond the limit, `transient` when the bytes are broken
 */
export async function gunzipped(
  body: Uint8Array,
  { limitBytes, buffers, where }: DecodeLimits,
): Promise<Uint8Array> {
  // The length in the body may be wrong.
  const output = bodyBuffer(Math.min(announcedBytes(body) ?? 0, MOST_ANNOUNCED), limitBytes, buffers)
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  let isTooLarge = false
  try {
    gunzip.end(body)
    for await (const chunk of gunzip) {
      isTooLarge = !output.add(chunk as Uint8Array)
      if (isTooLarge) break
    }
  } catch {
    buffers.give(output.take().buffer)
    throw new ExportError({
      kind: 'transient',
      what: 'The compressed response is broken or truncated',
      where,
      next: 'Run again later: the export resumes where it stopped.',
    })
  }
  if (!isTooLarge) return output.take()
  buffers.give(output.take().buffer)
  throw tooLarge(limitBytes, where)
}

// The greatest expansion by gzip.
const MAX_RATIO = 1032
/** More is allocated as it comes. */
const MOST_ANNOUNCED = 32 << 20

/** The length in the last four bytes; null: it is impossible. It is wrong for a body of several members. */
function announcedBytes(body: Uint8Array): number | null {
  if (body.byteLength < 18) return null
  const length = new DataView(body.buffer, body.byteOffset, body.byteLength).getUint32(
    body.byteLength - 4,
    true,
  )
  return length > 0 && length <= body.byteLength * MAX_RATIO ? length : null
}
