/**
 * Places for pages that are asked for before the one before them is committed. What a crash costs is every answer
 * that is paid for and not committed; so chains that read ahead share the places that are left of a fixed number.
 */
export type Prefetch = {
  /** Takes a place. @returns false: there is none */
  take(): boolean
  give(): void
}

/** @param free tells how many places there are at the moment */
export function prefetchSlots(free: () => number): Prefetch {
  let taken = 0
  return {
    take() {
      if (taken >= free()) return false
      taken++
      return true
    },
    give() {
      taken--
    },
  }
}
