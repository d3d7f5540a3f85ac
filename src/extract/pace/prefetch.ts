/**
 * Prefetch slots: the right to request a page before the one before it is committed. A crash costs every response
 * that is paid for and not committed, so all chains share a fixed number of slots.
 */
export type Prefetch = {
  /** Takes a slot. @returns false: none is free */
  take(): boolean
  give(): void
}

/** @param free returns how many slots there are at the moment */
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
