import { crc32 } from 'node:zlib'
import type { Log } from '../core/index.ts'

/**
 * The write-ahead log of an open shard: the masked rows of pages that are committed but not yet encoded into the shard. So
 * each page is durable by itself, and the shard still gets row groups of a useful size.
 *
 * A record is a header of four u32 (length of the frame, CRC-32 of the frame, generation, 0) and a frame.
 * A generation is the rows of one row group of the shard. Each begins at the start of a file.
 * @returns the end offset of each record
 */
export async function appendFrames(
  log: Log,
  generation: number,
  frames: readonly Uint8Array[],
): Promise<number[]> {
  let end = log.size
  await log.append(frames.flatMap((frame) => [headerOf(frame, generation), frame]))
  await log.fsync()
  return frames.map((frame) => {
    end += recordBytes(frame)
    return end
  })
}

function headerOf(frame: Uint8Array, generation: number): Uint8Array {
  return new Uint8Array(new Uint32Array([frame.byteLength, crc32(frame), generation, 0]).buffer)
}

/** Bytes of a frame's record. */
export function recordBytes(frame: Uint8Array): number {
  return HEADER_BYTES + frame.byteLength
}

const HEADER_BYTES = 16

/**
 * The frames of the records that end at these offsets, as views of the log's bytes. Stops before the first invalid record.
 * @param ends end offsets of the committed records, in order
 */
export function readFrames(bytes: Uint8Array, generation: number, ends: readonly number[]): Uint8Array[] {
  const frames: Uint8Array[] = []
  let start = 0
  for (const end of ends) {
    if (end > bytes.byteLength || end - start < HEADER_BYTES) break
    const header = new DataView(bytes.buffer, bytes.byteOffset + start, HEADER_BYTES)
    const frame = bytes.subarray(start + HEADER_BYTES, end)
    const isValid =
      header.getUint32(0, true) === frame.byteLength &&
      header.getUint32(4, true) === crc32(frame) &&
      header.getUint32(8, true) === generation
    if (!isValid) break
    frames.push(frame)
    start = end
  }
  return frames
}
