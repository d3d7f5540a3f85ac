/**
 * Large buffers that go round: from the receiver of a response to its decoder, with the rows that are put into them to
 * whoever commits these, and back. Without it every response would be a fresh allocation of megabytes, which costs page
 * faults and garbage collections.
 *
 * They are shared memory, which both threads see, because a buffer that changes hands is news to the garbage
 * collectors of both, and megabytes of news each time make these run for nothing. Nothing synchronizes them:
 * whoever has been told of a buffer has it alone until it hands it on.
 */
export type BufferPool = {
  /** A buffer of at least so many bytes, with anything in it. */
  take(bytes: number): ArrayBufferLike
  /** Gives a buffer back; whoever does must not look at it again. */
  give(buffer: ArrayBufferLike): void
}

/** No pool at all: for what is small, or kept by somebody who does not know of pools. */
export const freshBuffers: BufferPool = {
  take: (bytes) => new ArrayBuffer(bytes),
  give() {},
}

// Room for responses that are a little longer than the last one.
const HEADROOM = 1.125
// A response far beyond the usual is not worth keeping memory for; and shared memory that is dropped goes late,
// since no garbage collector counts it.
const MAX_KEPT_BYTES = 32 << 20

// All that is kept together: as much as responses on their way may take.
const MAX_KEPT_IN_ALL = 128 << 20

/** @param kept buffers that are kept at most */
export function bufferPool(kept: number): BufferPool {
  const free: ArrayBufferLike[] = []
  let bytesFree = 0
  return {
    take(bytes) {
      const fitting = free.findIndex(({ byteLength }) => byteLength >= bytes)
      const [buffer] = fitting < 0 ? [] : free.splice(fitting, 1)
      if (buffer !== undefined) {
        bytesFree -= buffer.byteLength
        return buffer
      }
      const size = Math.ceil(bytes * HEADROOM)
      return size > MAX_KEPT_BYTES ? new ArrayBuffer(size) : new SharedArrayBuffer(size)
    },
    give(buffer) {
      if (buffer instanceof ArrayBuffer || buffer.byteLength > MAX_KEPT_BYTES) return
      free.push(buffer)
      bytesFree += buffer.byteLength
      free.sort((a, b) => a.byteLength - b.byteLength)
      // The smallest is the one that is most likely to be outgrown.
      while (free.length > kept || bytesFree > MAX_KEPT_IN_ALL) bytesFree -= free.shift()!.byteLength
    },
  }
}
