import { type BufferPool, copyBytes } from '../../core/index.ts'
import { OWN_BYTES } from './response-memory.ts'

/** Collects a body at the beginning of one buffer. */
export type BodyBuffer = {
  /** @returns false when the body has passed the limit; what lies below it is kept */
  add(chunk: Uint8Array): boolean
  take(): Uint8Array
}

const FIRST_BYTES = 64 * 1024
// More is not asked of the system in one piece before it is needed.
const MODEST_LIMIT = 512 << 20

/**
 * @param expectedBytes the announced length; null: grows as needed
 * @param limitBytes never holds more than this
 */
export function bodyBuffer(
  expectedBytes: number | null,
  limitBytes: number,
  buffers: BufferPool,
): BodyBuffer {
  let bytes = new Uint8Array(buffers.take(Math.min(expectedBytes ?? FIRST_BYTES, limitBytes)))
  let length = 0

  function grow(needed: number): void {
    // A large response gets all that it may need: memory that is never written to costs nothing, a copy does.
    const wanted = needed > OWN_BYTES && limitBytes <= MODEST_LIMIT ? limitBytes : bytes.length * 2
    const grown = new Uint8Array(buffers.take(Math.min(limitBytes, Math.max(needed, wanted))))
    copyBytes(bytes.subarray(0, length), grown, 0)
    buffers.give(bytes.buffer)
    bytes = grown
  }

  return {
    add(chunk) {
      const fitting = chunk.subarray(0, limitBytes - length)
      if (length + fitting.length > bytes.length) grow(length + fitting.length)
      copyBytes(fitting, bytes, length)
      length += fitting.length
      return fitting.length === chunk.length
    },
    take: () => bytes.subarray(0, length),
  }
}
