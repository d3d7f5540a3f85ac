import type { BufferPool } from '../core/index.ts'
import { copyBytes } from '../rows/index.ts'

/** The share of one response. */
export type RoomShare = ReturnType<ReturnType<typeof responseMemory>>

/** A usual response of 10,000 rows has 7 MB. */
export const OWN_BYTES = 32 << 20
const SHARED_BYTES = 128 << 20
// Tokens and errors never wait: a 429 has to be processed at once.
const SMALL_BYTES = 256 << 10

type Waiting = { readonly share: object; readonly has: () => boolean; readonly then: () => void }

/**
 * Memory for the responses in flight. Together they take at most 128 MB, each at most 32 MB of it. In addition, one
 * response at a time may grow to the allowed size; others that need more room wait for that. So all responses take at
 * most 128 MB and `service.max_response_bytes`, however many requests are in flight. Only the first 256 kB of each are
 * received without a reservation.
 */
export function responseMemory() {
  /** The response that may grow to the allowed size. */
  let holder: object | null = null
  /** The bytes of all others. */
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

  return () => {
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
      /** Reserves so many bytes for the response, if they are free now. @returns whether it did */
      has(bytes: number): boolean {
        if (bytes <= SMALL_BYTES && holder !== self) return hold(bytes)
        return (queue.length === 0 || holder === self) && grow(bytes)
      },
      /** Calls `then` when so many bytes are reserved. */
      wait(bytes: number, then: () => void): void {
        queue.push({ share: self, has: () => grow(bytes), then })
        admit()
      },
      /** Returns the memory. Idempotent. */
      release(): void {
        const index = queue.findIndex(({ share }) => share === self)
        if (index >= 0) queue.splice(index, 1)
        hold(0)
        if (holder === self) holder = null
        admit()
      },
    }
  }
}

export type BodyBuffer = ReturnType<typeof bodyBuffer>

const FIRST_BYTES = 64 * 1024
// No more is allocated at once before it is needed.
const MODEST_LIMIT = 512 << 20

/**
 * Collects a body at the beginning of one buffer.
 * @param expectedBytes the announced length; null: grows as needed
 * @param limitBytes the maximum length
 */
export function bodyBuffer(expectedBytes: number | null, limitBytes: number, buffers: BufferPool) {
  let bytes = new Uint8Array(buffers.take(Math.min(expectedBytes ?? FIRST_BYTES, limitBytes)))
  let length = 0

  function grow(needed: number): void {
    // A large response gets the maximum at once: memory that is never written to costs nothing, but a copy does.
    const large = limitBytes <= MODEST_LIMIT ? limitBytes : bytes.length * 2
    const wanted = needed > OWN_BYTES ? large : Math.min(bytes.length * 2, OWN_BYTES)
    const grown = new Uint8Array(buffers.take(Math.min(limitBytes, Math.max(needed, wanted))))
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
