import { createGunzip } from 'node:zlib'
import { type BufferPool, ExportError } from '../../core/index.ts'
import { bodyBuffer, OWN_BYTES, type RoomShare } from './response-memory.ts'

export type ContentCoding = 'identity' | 'gzip' | 'unknown'

/** What a `Content-Encoding` header says. Only gzip is requested. */
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
  /** Never holds more output than this. */
  readonly limitBytes: number
  /** Where the output's memory comes from. */
  readonly buffers: BufferPool
  /** For what is larger than other responses leave room for. */
  readonly share: RoomShare
  readonly where: string
}

/**
 * Decodes a whole body.
 * @throws ExportError `data` beyond the limit or for an unknown coding, `transient` when the bytes are broken
 */
export async function decodeContent(
  body: Uint8Array,
  coding: ContentCoding,
  limits: DecodeLimits,
): Promise<Uint8Array> {
  switch (coding) {
    case 'identity':
      return body
    case 'unknown':
      throw unknownCoding(limits.where)
    case 'gzip':
      return gunzipped(body, limits)
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
const CHUNK_BYTES = 256 * 1024

async function gunzipped(
  body: Uint8Array,
  { limitBytes, buffers, share, where }: DecodeLimits,
): Promise<Uint8Array> {
  // What it says of its own length may be a lie.
  const output = bodyBuffer(Math.min(foretoldBytes(body) ?? 0, OWN_BYTES) || null, limitBytes, buffers)
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  let isTooLarge = false
  let bytes = 0
  try {
    gunzip.end(body)
    for await (const chunk of gunzip) {
      bytes += (chunk as Uint8Array).byteLength
      // What it is made of is still held.
      const held = body.byteLength + bytes
      if (!share.has(held)) await new Promise<void>((then) => share.wait(held, then))
      isTooLarge = !output.add(chunk as Uint8Array)
      if (isTooLarge) break
    }
  } catch {
    buffers.give(output.take().buffer)
    throw new ExportError(
      'transient',
      'The compressed answer is broken or cut short',
      where,
      'Run again later: the export goes on from where it stopped.',
    )
  }
  if (!isTooLarge) return output.take()
  buffers.give(output.take().buffer)
  throw tooLarge(limitBytes, where)
}

// What gzip can make of a byte at the most.
const MAX_RATIO = 1032

/** The length that the last four bytes give; null where it is impossible. A body of several parts has another one. */
function foretoldBytes(body: Uint8Array): number | null {
  if (body.byteLength < 18) return null
  const length = new DataView(body.buffer, body.byteOffset, body.byteLength).getUint32(
    body.byteLength - 4,
    true,
  )
  return length > 0 && length <= body.byteLength * MAX_RATIO ? length : null
}
