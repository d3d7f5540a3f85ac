/** Numbers that look random and are the same for the same seed: mulberry32. */
export type Random = {
  /** From 0 up to, but without, `below`; whole. */
  below(below: number): number
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return {
    below(below) {
      state = (state + 0x6d2b79f5) >>> 0
      let mixed = Math.imul(state ^ (state >>> 15), state | 1)
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
      return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
    },
  }
}
