import { crc32 } from 'node:zlib'

/**
 * `crc` ends it: the CRC-32 of the text, for cut lines, and one that continues the last, for missing lines.
 * @param previous the checksum that it continues
 */
export function encodeLine(
  object: object,
  previous: number,
): { readonly line: Buffer; readonly checksum: number } {
  const body = JSON.stringify(object).slice(0, -1)
  const checksum = crc32(body, previous)
  return { line: Buffer.from(`${body},"crc":"${hex(crc32(body))}${hex(checksum)}"}\n`), checksum }
}

const TRAILER = /,"crc":"([0-9a-f]{8})([0-9a-f]{8})"\}$/
const TRAILER_LENGTH = ',"crc":"0000000000000000"}'.length

/** @param bytes a line without its line break @returns null if it does not match its own checksum */
export function parseLine(
  bytes: Buffer,
  previous: number,
): { readonly value: unknown; readonly checksum: number; readonly follows: boolean } | null {
  const match = TRAILER.exec(bytes.subarray(-TRAILER_LENGTH).toString('latin1'))
  if (match === null) return null
  const body = bytes.subarray(0, bytes.length - TRAILER_LENGTH)
  if (Number.parseInt(match[1]!, 16) !== crc32(body)) return null
  const checksum = Number.parseInt(match[2]!, 16)
  return { value: JSON.parse(`${body.toString()}}`), checksum, follows: checksum === crc32(body, previous) }
}

export const NEWLINE = 10

/** The lines of a file, without their line breaks; the last is null if the file ends in the middle of a line. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null> {
  let begun: Buffer[] = []
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    let start = 0
    for (let stop = bytes.indexOf(NEWLINE); stop >= 0; stop = bytes.indexOf(NEWLINE, start)) {
      const line = bytes.subarray(start, stop)
      yield begun.length === 0 ? line : Buffer.concat([...begun, line])
      begun = []
      start = stop + 1
    }
    // A copy, because the store may reuse the memory of the chunk.
    if (start < bytes.length) begun.push(Buffer.from(bytes.subarray(start)))
  }
  if (begun.length > 0) yield null
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0')
}
