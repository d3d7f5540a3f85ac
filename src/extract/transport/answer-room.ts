/**
 * Memory for the answers that are on their way at one time. Up to 32 MB each has its own; what is larger is received
 * one at a time, so that all of them together never hold more than one answer of the allowed size and 32 MB for each
 * other request.
 */
export type AnswerRoom = {
  /** A share of it for one answer. */
  share(): RoomShare
}

export type RoomShare = {
  /** Whether an answer may grow to so many bytes right now. */
  has(bytes: number): boolean
  /** Calls once it may grow beyond 32 MB. */
  wait(then: () => void): void
  /** Lets the next one have it; again and again does nothing. */
  release(): void
}

/** The usual answer of 10,000 rows is 7 MB. */
export const OWN_BYTES = 32 << 20

export function answerRoom(): AnswerRoom {
  let holder: object | null = null
  const queue: { readonly share: object; readonly then: () => void }[] = []
  return {
    share() {
      const self = {}
      return {
        has: (bytes) => bytes <= OWN_BYTES || holder === self,
        wait(then) {
          if (holder !== null && holder !== self) {
            queue.push({ share: self, then })
            return
          }
          holder = self
          then()
        },
        release() {
          const place = queue.findIndex(({ share }) => share === self)
          if (place >= 0) queue.splice(place, 1)
          if (holder !== self) return
          const next = queue.shift()
          holder = next?.share ?? null
          next?.then()
        },
      }
    },
  }
}
