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
