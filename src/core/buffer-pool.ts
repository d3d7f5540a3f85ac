/**
 * Large buffers that go round: from the receiver of an answer to its decoder and back. Without it every
 * answer would be a fresh allocation of megabytes, which costs page faults and garbage collections.
 */
export type BufferPool = {
  /** A buffer of at least so many bytes, with anything in it. */
  take(bytes: number): ArrayBuffer
  /** Gives a buffer back; whoever does must not look at it again. */
  give(buffer: ArrayBuffer): void
}

// Room for answers that are a little longer than the last one.
const HEADROOM = 1.125
// An answer far beyond the usual is not worth keeping memory for.
const MAX_KEPT_BYTES = 32 << 20

/** @param kept buffers that are kept at most */
export function bufferPool(kept: number): BufferPool {
  const free: ArrayBuffer[] = []
  return {
    take(bytes) {
      const fitting = free.findIndex(({ byteLength }) => byteLength >= bytes)
      const [buffer] = fitting < 0 ? [] : free.splice(fitting, 1)
      return buffer ?? new ArrayBuffer(Math.ceil(bytes * HEADROOM))
    },
    give(buffer) {
      if (buffer.byteLength === 0 || buffer.byteLength > MAX_KEPT_BYTES) return
      free.push(buffer)
      free.sort((a, b) => a.byteLength - b.byteLength)
      // The smallest is the one that is most likely to be outgrown.
      if (free.length > kept) free.shift()
    },
  }
}
