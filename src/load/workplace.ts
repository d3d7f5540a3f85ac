import { type Serial, serial } from '../core/index.ts'

/** What the shards of a set share for encoding: one of them has it at a time. */
export type Workplace = {
  /** Carries out one piece of work at a time. */
  readonly inTurn: Serial
  /** So many bytes, with anything in them; the same memory each time unless they are many, and one that threads share. */
  room(bytes: number): Uint8Array
}

/** Room for work that is a little larger than the last: shared memory that was outgrown is collected late. */
const HEADROOM = 1.25
const MAX_KEPT_BYTES = 64 << 20

export function workplace(): Workplace {
  let memory = new SharedArrayBuffer(0)
  return {
    inTurn: serial(),
    room(bytes) {
      if (bytes > MAX_KEPT_BYTES) return new Uint8Array(new SharedArrayBuffer(bytes))
      if (memory.byteLength < bytes) memory = new SharedArrayBuffer(Math.ceil(bytes * HEADROOM))
      return new Uint8Array(memory, 0, bytes)
    },
  }
}
