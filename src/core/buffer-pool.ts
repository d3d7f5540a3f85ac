/**
 * A pool of large buffers. A buffer goes from the receiver of a response to its decoder, then with the decoded rows to
 * the committer, and back to the pool. Without it every response would allocate megabytes, which costs page faults and
 * garbage collections.
 *
 * Buffers are shared memory, because each transfer would make the garbage collectors of both threads run. Access is not
 * synchronized: a buffer has one owner at a time, which hands it over.
 */
export type BufferPool = {
  /** A buffer of at least this many bytes. Its contents are undefined. */
  take(bytes: number): ArrayBufferLike
  /** Returns a buffer to the pool. The caller must not read it afterwards. */
  give(buffer: ArrayBufferLike): void
}

/** Always allocates. For small buffers, and for those that are never returned. */
export const freshBuffers: BufferPool = {
  take: (bytes) => new ArrayBuffer(bytes),
  give() {},
}

// Room for responses that are a little longer than the last one.
const HEADROOM = 1.125
// Larger buffers are rare, so they are not kept. They are not shared memory either: garbage collectors don't count
// shared memory, and free it late.
const MAX_KEPT_BYTES = 32 << 20

// Limit of all kept buffers together. Responses in flight may take more.
const MAX_KEPT_IN_ALL = 128 << 20

/** @param kept maximum number of kept buffers */
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
      // The smallest buffer is the most likely one to be too small for the next response.
      while (free.length > kept || bytesFree > MAX_KEPT_IN_ALL) bytesFree -= free.shift()!.byteLength
    },
  }
}
