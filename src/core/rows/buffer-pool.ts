/**
 * A pool of large buffers. A buffer goes from the receiver of a response to its decoder, then with the decoded rows to
 * the committer, and back to the pool. Without it every response would allocate megabytes, which costs page faults and
 * garbage collections.
 *
 * Buffers are shared memory, because transferring one would make the garbage collectors of both threads run for
 * nothing. Access is not synchronized: a buffer has one owner at a time, who passes it on.
 */
export type BufferPool = {
  /** A buffer of at least so many bytes, with anything in it. */
  take(bytes: number): ArrayBufferLike
  /** Gives a buffer back; the caller must not read it afterwards. */
  give(buffer: ArrayBufferLike): void
}

/** Always allocates: for small buffers, and for those that are never given back. */
export const freshBuffers: BufferPool = {
  take: (bytes) => new ArrayBuffer(bytes),
  give() {},
}

// Room for responses that are a little longer than the last one.
const HEADROOM = 1.125
// A response far beyond the usual is not worth keeping memory for; and shared memory that is dropped goes late,
// since no garbage collector counts it.
const MAX_KEPT_BYTES = 32 << 20

// Limit of all kept buffers together: as much as responses in flight may take.
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
