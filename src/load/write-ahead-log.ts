import { crc32 } from 'node:zlib'
import type { Log } from '../core/index.ts'

/**
 * Appends to the write-ahead log of an open shard: the masked rows of pages that are committed but not yet encoded into
 * the shard. With it, each page is durable by itself, and the shard still gets row groups of a useful size.
 *
 * A record is a header of four u32 (length and CRC-32 of the record batch, generation, 0) and a record batch.
 * A generation is the rows of one row group of the shard. Each generation begins at the start of a file.
 * @returns the end offset of each record
 */
export async function appendRecordBatches(
  log: Log,
  generation: number,
  recordBatches: readonly Uint8Array[],
): Promise<number[]> {
  let end = log.size
  await log.append(recordBatches.flatMap((recordBatch) => [headerOf(recordBatch, generation), recordBatch]))
  await log.fsync()
  return recordBatches.map((recordBatch) => {
    end += HEADER_BYTES + recordBatch.byteLength
    return end
  })
}

function headerOf(recordBatch: Uint8Array, generation: number): Uint8Array {
  return new Uint8Array(new Uint32Array([recordBatch.byteLength, crc32(recordBatch), generation, 0]).buffer)
}

const HEADER_BYTES = 16

/**
 * The record batches that end at these offsets, as views of the log's bytes. Stops before the first invalid one.
 * @param ends end offsets of the committed records, in order
 */
export function readRecordBatches(
  bytes: Uint8Array,
  generation: number,
  ends: readonly number[],
): Uint8Array[] {
  const recordBatches: Uint8Array[] = []
  let start = 0
  for (const end of ends) {
    if (end > bytes.byteLength || end - start < HEADER_BYTES) break
    const header = new DataView(bytes.buffer, bytes.byteOffset + start, HEADER_BYTES)
    const recordBatch = bytes.subarray(start + HEADER_BYTES, end)
    const isValid =
      header.getUint32(0, true) === recordBatch.byteLength &&
      header.getUint32(4, true) === crc32(recordBatch) &&
      header.getUint32(8, true) === generation
    if (!isValid) break
    recordBatches.push(recordBatch)
    start = end
  }
  return recordBatches
}
