import type { BufferPool } from '../../core/index.ts'
import { copyBytes } from '../../core/index.ts'

/**
 * Memory for the responses that are in flight at one time. All of them together take 128 MB, each at most 32 MB of it;
 * what finds no room there waits until it is the one response beside them that may grow to the allowed size. So all
 * of them never hold more than 128 MB and `service.max_response_bytes`, however many requests are in flight; only the first
 * 256 kB of each come in at once.
 */
export type ResponseMemory = {
  /** A share of it for one response. */
  share(): RoomShare
}

export type RoomShare = {
  /** Whether a response may grow to so many bytes now; if so, it holds them. */
  has(bytes: number): boolean
  /** Calls `then` once it holds so many bytes. */
  wait(bytes: number, then: () => void): void
  /** Returns the memory. Idempotent. */
  release(): void
}

/** A usual response of 10,000 rows has 7 MB. */
export const OWN_BYTES = 32 << 20
const SHARED_BYTES = 128 << 20
// Tokens and errors never wait: a 429 has to be known at once.
const SMALL_BYTES = 256 << 10

type Waiting = { readonly share: object; readonly has: () => boolean; readonly then: () => void }

export function responseMemory(): ResponseMemory {
  /** The one that may grow to the allowed size. */
  let holder: object | null = null
  /** What all others hold. */
  let shared = 0
  const queue: Waiting[] = []

  /** First in, first out. */
  function admit(): void {
    for (let first = queue[0]; first !== undefined; first = queue[0]) {
      if (!first.has()) {
        if (holder !== null) return
        holder = first.share
        first.has()
      }
      queue.shift()
      first.then()
    }
  }

  return {
    share() {
      const self = {}
      let held = 0
      const hold = (bytes: number): true => {
        shared += bytes - held
        held = bytes
        return true
      }
      const grow = (bytes: number): boolean => {
        if (holder === self) return hold(0)
        return bytes <= OWN_BYTES && shared - held + bytes <= SHARED_BYTES && hold(bytes)
      }
      return {
        has(bytes) {
          if (bytes <= SMALL_BYTES && holder !== self) return hold(bytes)
          return (queue.length === 0 || holder === self) && grow(bytes)
        },
        wait(bytes, then) {
          queue.push({ share: self, has: () => grow(bytes), then })
          admit()
        },
        release() {
          const index = queue.findIndex(({ share }) => share === self)
          if (index >= 0) queue.splice(index, 1)
          hold(0)
          if (holder === self) holder = null
          admit()
        },
      }
    },
  }
}

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
