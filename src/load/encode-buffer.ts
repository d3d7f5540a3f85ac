import { type Serial, serial } from '../core/index.ts'

/** Memory in which the shards of a set are encoded, one at a time. */
export type EncodeBuffer = {
  /** Runs one task at a time. */
  readonly exclusive: Serial
  /** So many bytes of shared memory, not cleared. It is the same memory each time, unless they are very many. */
  take(bytes: number): Uint8Array
}

/** Room to grow: shared memory that is too small is garbage-collected late. */
const HEADROOM = 1.25
const MAX_KEPT_BYTES = 64 << 20

export function makeEncodeBuffer(): EncodeBuffer {
  let memory = new SharedArrayBuffer(0)
  return {
    exclusive: serial(),
    take(bytes) {
      if (bytes > MAX_KEPT_BYTES) return new Uint8Array(new SharedArrayBuffer(bytes))
      if (memory.byteLength < bytes) memory = new SharedArrayBuffer(Math.ceil(bytes * HEADROOM))
      return new Uint8Array(memory, 0, bytes)
    },
  }
}
