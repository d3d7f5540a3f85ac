import type { BufferPool } from '../core/index.ts'
import { copyBytes } from '../rows/index.ts'

export type BodyBuffer = ReturnType<typeof bodyBuffer>

const FIRST_BYTES = 64 * 1024
/** Memory that is never written to costs nothing, but each copy does, and leaves a buffer behind. */
const GROWTH = 16

/**
 * Collects a body at the beginning of one buffer.
 * @param expectedBytes the length as far as it is known; the buffer grows as needed
 * @param limitBytes the maximum length
 */
export function bodyBuffer(expectedBytes: number, limitBytes: number, buffers: BufferPool) {
  let bytes = new Uint8Array(buffers.take(Math.min(expectedBytes || FIRST_BYTES, limitBytes)))
  let length = 0

  function grow(needed: number): void {
    const grown = new Uint8Array(buffers.take(Math.min(limitBytes, Math.max(needed, bytes.length * GROWTH))))
    copyBytes(bytes.subarray(0, length), grown, 0)
    buffers.give(bytes.buffer)
    bytes = grown
  }

  return {
    /** @returns false when the body exceeds the limit; the bytes below it are kept */
    add(chunk: Uint8Array): boolean {
      const fitting = chunk.subarray(0, limitBytes - length)
      if (length + fitting.length > bytes.length) grow(length + fitting.length)
      copyBytes(fitting, bytes, length)
      length += fitting.length
      return fitting.length === chunk.length
    },
    take: (): Uint8Array => bytes.subarray(0, length),
  }
}
