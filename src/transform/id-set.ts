const FIRST_SLOTS = 1 << 12
/** More memory than this is freed after the page. */
const MAX_KEPT_SLOTS = 1 << 18

// Random, so that nobody can choose ids whose hashes collide.
const SEED = (Math.random() * 2 ** 32) | 0

/** An exact set of 64-bit integers, each given as its low and its high 32 bits. `clear` keeps its memory. */
export class IdSet {
  #slots = FIRST_SLOTS
  /** Two words per slot; both are 0 in an empty slot. */
  #words = new Int32Array(2 * FIRST_SLOTS)
  #hasZero = false
  #size = 0

  /** @returns false when the set already has it */
  add(low: number, high: number): boolean {
    if ((low | high) === 0) {
      if (this.#hasZero) return false
      this.#hasZero = true
      this.#size++
      return true
    }
    const words = this.#words
    const mask = this.#slots - 1
    for (let slot = hash(low, high) & mask; ; slot = (slot + 1) & mask) {
      const at = 2 * slot
      const foundLow = words[at]!
      const foundHigh = words[at + 1]!
      if (foundLow === low && foundHigh === high) return false
      if ((foundLow | foundHigh) === 0) {
        words[at] = low
        words[at + 1] = high
        // In a fuller table, lookups would read many slots.
        if (++this.#size > this.#slots * 0.6) this.#grow()
        return true
      }
    }
  }

  has(low: number, high: number): boolean {
    if ((low | high) === 0) return this.#hasZero
    const words = this.#words
    const mask = this.#slots - 1
    for (let slot = hash(low, high) & mask; ; slot = (slot + 1) & mask) {
      const [foundLow, foundHigh] = [words[2 * slot]!, words[2 * slot + 1]!]
      if (foundLow === low && foundHigh === high) return true
      if ((foundLow | foundHigh) === 0) return false
    }
  }

  clear(): void {
    this.#size = 0
    this.#hasZero = false
    if (this.#slots <= MAX_KEPT_SLOTS) this.#words.fill(0)
    else {
      this.#slots = FIRST_SLOTS
      this.#words = new Int32Array(2 * FIRST_SLOTS)
    }
  }

  #grow(): void {
    const old = this.#words
    this.#slots *= 2
    this.#words = new Int32Array(2 * this.#slots)
    this.#size = this.#hasZero ? 1 : 0
    for (let at = 0; at < old.length; at += 2) {
      if ((old[at]! | old[at + 1]!) !== 0) this.add(old[at]!, old[at + 1]!)
    }
  }
}

function hash(low: number, high: number): number {
  let mixed = Math.imul(low ^ SEED, 0x9e3779b1) ^ Math.imul(high + SEED, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  return mixed ^ (mixed >>> 13)
}

/** The low 32 bits of an integer of up to 64 bits. */
export function lowWord(id: number | bigint): number {
  return typeof id === 'number' ? id | 0 : Number(BigInt.asIntN(32, id))
}

/** The high 32 bits. They are the same for a number and a bigint of equal value. */
export function highWord(id: number | bigint): number {
  return typeof id === 'number' ? Math.floor(id / 0x1_0000_0000) | 0 : Number(BigInt.asIntN(32, id >> 32n))
}
