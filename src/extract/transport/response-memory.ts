/**
 * Memory for the answers that are on their way at one time. All of them together take 128 MB, each at most 32 MB of it;
 * what finds no room there waits for its turn to be the one answer beside them that may grow to the allowed size. So all
 * of them never hold more than 128 MB and `service.max_response_bytes`, however many requests are in flight; only the first
 * 256 kB of each come in at once.
 */
export type ResponseMemory = {
  /** A share of it for one answer. */
  share(): RoomShare
}

export type RoomShare = {
  /** Whether an answer may grow to so many bytes right now; it has them then. */
  has(bytes: number): boolean
  /** Calls once it may grow to so many bytes, and has them. */
  wait(bytes: number, then: () => void): void
  /** Lets others have it; again and again does nothing. */
  release(): void
}

/** The usual answer of 10,000 rows is 7 MB. */
export const OWN_BYTES = 32 << 20
const SHARED_BYTES = 128 << 20
// Tokens and errors wait for nobody: a 429 has to be known at once.
const SMALL_BYTES = 256 << 10

type Waiting = { readonly share: object; readonly has: () => boolean; readonly then: () => void }

export function responseMemory(): ResponseMemory {
  /** The one that may grow to the allowed size. */
  let holder: object | null = null
  /** What all others hold. */
  let shared = 0
  const queue: Waiting[] = []

  /** In their order: who comes later takes no room from who waits. */
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
